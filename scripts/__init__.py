"""Command lines for those who run the plugin; they are not part of the package."""
