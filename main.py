"""Starts the plugin; the daemon runs `python -m main` in the package's folder."""

from dify_plugin import DifyPluginEnv, Plugin
from dify_plugin.config.logger_format import plugin_logger_handler

from dify.logs import send_to
from dify.metrics import count_calls

send_to(plugin_logger_handler)
count_calls()
plugin = Plugin(DifyPluginEnv())

if __name__ == "__main__":
    plugin.run()
