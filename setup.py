"""Finds the packages of the three folders, and installs `strategies` and `problems` under names of their own."""

from setuptools import find_packages, setup

FOLDERS = {"bbo_suite": "bbo_suite", "bbo_strategies": "strategies", "bbo_problems": "problems"}

packages = [
    package + inner
    for package, folder in FOLDERS.items()
    for inner in ("", *(f".{each}" for each in find_packages(folder)))
]
setup(package_dir=FOLDERS, packages=packages)
