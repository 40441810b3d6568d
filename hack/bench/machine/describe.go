package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Description is what a result is worth nothing without.
type Description struct {
	Time       time.Time `json:"time"`
	Commit     string    `json:"commit"`
	Processor  string    `json:"processor"`
	Cores      int       `json:"cores"`
	MemoryGiB  float64   `json:"memoryGiB"`
	Kernel     string    `json:"kernel"`
	FileSystem string    `json:"fileSystem"`
	Disk       string    `json:"disk"`
	Go         string    `json:"go"`
	// LoadBefore is the machine's load average of one minute at the begin: with
	// anything else to do, the figures are worth little.
	LoadBefore string `json:"loadBefore"`
}

// Describe describes this machine and the file system of dir.
func Describe(dir string) (Description, error) {
	d := Description{Time: time.Now().UTC(), Cores: runtime.NumCPU(), Go: runtime.Version(), LoadBefore: Load(), Commit: commit()}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return d, err
	}
	d.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return d, err
	}
	d.MemoryGiB = float64(field(memory, "MemTotal:")>>10) / 1024
	d.Processor = processor()
	d.FileSystem, d.Disk, err = mounted(dir)
	return d, err
}

// Load is the load average of one minute.
func Load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(b), " ")
	return one
}

func commit() string {
	b, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func processor() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// mounted finds the mount that dir is on: the longest one that is a parent of it.
func mounted(dir string) (fileSystem, disk string, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", "", err
	}
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", "", err
	}
	best := ""
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 4 || len(f[1]) < len(best) || f[1] != "/" && dir != f[1] && !strings.HasPrefix(dir, f[1]+"/") {
			continue
		}
		best, fileSystem, disk = f[1], fmt.Sprintf("%s (%s)", f[2], f[3]), f[0]
	}
	if b, err := os.ReadFile("/sys/class/block/" + filepath.Base(disk) + "/size"); err == nil {
		if sectors, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
			disk += fmt.Sprintf(" (%d GiB)", sectors>>21)
		}
	}
	return fileSystem, disk, nil
}
