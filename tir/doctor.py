"""``python -m tir.doctor`` prints what this machine can do; ``tir.doctor()`` gives it."""

if __name__ == "__main__":
    from codegen.doctor import doctor

    print(doctor())
