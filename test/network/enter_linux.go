package network

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// inside marks the environment of a binary that runs in its own namespaces.
const inside = "TIDEMARK_TEST_NAMESPACES"

// Missing says what this machine lacks for namespaces; nil if nothing.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root")
	}
	for _, p := range []string{"ip", "tc", "nft"} {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%w: install iproute2 and nftables", err)
		}
	}
	return nil
}

// Inside tells whether this process runs in namespaces that [Enter] made.
func Inside() bool { return os.Getenv(inside) != "" }

// Enter runs this binary again, with the same arguments, in new namespaces, and returns its exit code; the caller
// exits with it. In the binary that runs inside it prepares the namespaces and returns entered as true: the
// caller goes on with its work. The binary inside is process 1 of its namespace; whatever it has started ends
// with it.
func Enter() (code int, entered bool, err error) {
	if Inside() {
		return 0, true, prepare()
	}
	// The parent-death signal is sent when the thread ends that started the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), false, nil
	}
	if err != nil {
		return 1, false, fmt.Errorf("run in own namespaces: %w", err)
	}
	return 0, false, nil
}

// prepare gives the namespaces their own list of processes, list of named network namespaces and loopback.
func prepare() error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts apart: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", "/run/netns", "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount /run/netns: %w", err)
	}
	return run("", "ip", "link", "set", "lo", "up")
}
