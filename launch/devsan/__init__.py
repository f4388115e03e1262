"""What Python programs need of devsan. The sanitizer itself is the command `devsan`."""
