package machine

import "syscall"

// dieWithParent has the kernel kill a child whose parent is gone.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
