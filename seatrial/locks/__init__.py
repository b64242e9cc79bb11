"""The committed plan: written, checked, edited by hand, compared with a new one."""
