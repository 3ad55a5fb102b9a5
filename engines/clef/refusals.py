"""Why a checkpoint is not served: its files, or the device it was to run on."""


class CheckpointError(ValueError):
    """Files that are not a checkpoint this engine reads; names the file, tensor or key."""


class DeviceError(RuntimeError):
    """The device is missing, too small or gone."""
