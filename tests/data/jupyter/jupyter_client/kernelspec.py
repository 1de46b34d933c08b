NAMES = {'toy': '/nowhere'}


class NoSuchKernel(Exception):
    pass


class KernelSpecManager:
    def find_kernel_specs(self):
        return NAMES
