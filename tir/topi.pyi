# ruff: noqa: F403
from tir.ops import *
from tir.ops import nn as nn
