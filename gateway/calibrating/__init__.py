"""Engines and labels to calibrations, floors with a promise, and a report. Offline; no HTTP."""
