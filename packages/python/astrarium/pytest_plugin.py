"""Fixtures for pytest, there as soon as the package is installed.

``astrarium_server`` is one server for the whole run, ``astrarium_fresh_server`` one for each test that asks for it.
"""

from __future__ import annotations

import pytest

import astrarium


@pytest.fixture(scope="session")
def astrarium_server():
    """A server for all tests of this run; keeps nothing."""
    with astrarium.start() as server:
        yield server


@pytest.fixture
def astrarium_fresh_server():
    """An empty server for this test alone; keeps nothing."""
    with astrarium.start() as server:
        yield server
