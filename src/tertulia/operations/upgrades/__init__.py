"""Formats on disk: recognise them, convert files of earlier ones with a backup beside them, undo a conversion."""
