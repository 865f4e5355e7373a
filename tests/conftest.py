"""Options shared by the tests."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files from what the tests produce")
    parser.addoption("--need-gpu", action="store_true", help="fail, not skip, where there is no CUDA device")
