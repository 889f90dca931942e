"""What building, testing and showing the plugin needs; none of it is in the package."""
