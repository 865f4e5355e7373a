"""Options shared by the tests."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files from what the tests produce")
