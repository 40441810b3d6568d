package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// userHz is the unit of utime and stime in /proc on every Linux.
const userHz = 100

// CPU is the processor time that a process has used, with all its threads.
func CPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(b)
}

// parseStat finds utime and stime behind the program's name, which may hold blanks and
// parentheses.
func parseStat(b []byte) (time.Duration, error) {
	_, rest, ok := bytes.Cut(b[max(bytes.LastIndexByte(b, ')'), 0):], []byte(") "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat reads %q", b)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / userHz, errors.Join(err, err2)
}

// Memory is the resident memory of a process, in bytes.
type Memory struct{ Now, Peak int64 }

// Resident reads it. ResetPeak begins a new peak.
func Resident(pid int) (Memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	return Memory{field(b, "VmRSS:") << 10, field(b, "VmHWM:") << 10}, nil
}

// ResetPeak makes the peak what is resident now.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// DiskReads is how many bytes a process has had read from disks.
func DiskReads(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	return field(b, "read_bytes:"), err
}

// field finds the number behind a name at the begin of a line, 0 if there is none.
func field(b []byte, name string) int64 {
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// Process is a program that was started, with its output in a file.
type Process struct {
	cmd    *exec.Cmd
	output string
	ended  chan struct{}
}

// Start runs a program; it dies with this one. The environment is added to ours.
func Start(output string, environment []string, program string, args ...string) (*Process, error) {
	f, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.Env = append(os.Environ(), environment...)
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	p := &Process{cmd, output, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its output
		close(p.ended)
	}()
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Output is all that the process has said.
func (p *Process) Output() string {
	b, _ := os.ReadFile(p.output)
	return string(b)
}

// Kill ends the process as kill -9 does, and waits.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

func (p *Process) signal(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s) // it may have ended
	<-p.ended
}
