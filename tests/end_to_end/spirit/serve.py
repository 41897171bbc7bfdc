"""Serves Spirit on a free loopback port and writes its number. Runs in Spirit's environment.

It ends when it is told to, or when its standard input ends: when whoever started it is gone.
"""

import os
import sys
from threading import Thread

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")

from django.core.wsgi import get_wsgi_application
from waitress import create_server


def end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


server = create_server(get_wsgi_application(), host="127.0.0.1", port=0, threads=8)
Thread(target=end_with_input, daemon=True).start()
sys.stdout.write(f"{server.effective_port}\n")
sys.stdout.flush()
server.run()
