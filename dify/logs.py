"""Where the engine's log lines go: into the plugin's own protocol, as the daemon reads them."""

import logging

from memory.call_log import LOGGER


def send_to(handler: logging.Handler) -> None:
    """Send the lines to a handler, and nowhere else."""
    log = logging.getLogger(LOGGER)
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers = [handler]
