"""The script is read by mypy and not run: nor are its doctests looked for."""

collect_ignore = ["user_script.py"]
