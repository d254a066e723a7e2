"""Marks test cases that take long by nature."""
import os
import unittest

long_test = unittest.skipUnless(os.environ.get("QKV_LONG"), "long; script/test --long runs it")
