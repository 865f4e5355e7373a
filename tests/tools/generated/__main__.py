from . import FILES

for file, text in FILES.items():
    file.write_text(text(), encoding="utf-8")
    print(f"wrote {file.parent.name}/{file.name}")
