from tir.ops import *
import tir.ops.nn as nn
