"""Serves Spirit on a free loopback port, whose number is the one line it prints. Runs in Spirit's environment."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")

from django.core.wsgi import get_wsgi_application
from waitress import create_server

server = create_server(get_wsgi_application(), host="127.0.0.1", port=0, threads=8)
print(server.effective_port, flush=True)
server.run()
