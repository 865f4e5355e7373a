"""Questions about a program; nothing here changes one."""
