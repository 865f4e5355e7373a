"""Programs with their schedules, ready to build: each has a function that makes the program and one that schedules it.

>>> import tir
>>> from tir.library import gemm
>>> sch = gemm.schedule_gemm(tir.Schedule(gemm.gemm(64, 48, 32)))
"""
