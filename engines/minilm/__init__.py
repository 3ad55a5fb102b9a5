"""The small sentence encoder that comes with the install; engines share it, it is none itself."""
