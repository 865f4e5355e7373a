"""What is made from the product's tables: stubs for editors, pages of the documentation.

``python -m tests.tools.generated`` writes them.
"""

from . import operator_stubs, operators_page, pass_stub, primitives_page, schedule_stub, script_stubs

FILES = {
    schedule_stub.STUB: schedule_stub.text,
    pass_stub.STUB: pass_stub.text,
    script_stubs.STUB: script_stubs.text,
    script_stubs.PACKAGE_STUB: script_stubs.package_text,
    **{stub: lambda name=name: operator_stubs.text(name) for name, stub in operator_stubs.STUBS.items()},
    primitives_page.PAGE: primitives_page.text,
    operators_page.PAGE: operators_page.text,
}
