package machine

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestProcessorTimeIsFoundBehindAnyName(t *testing.T) {
	stat := "42 (a) (b c) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 3 4 20 0 9 0 100 1 2 3\n"
	got, err := parseStat([]byte(stat))
	if err != nil || got != 1750*time.Millisecond {
		t.Errorf("got %v, %v, want 1.75s", got, err)
	}
	for _, bad := range []string{"", "42", "42 (a) S 1 2"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestThisProcessUsesTimeAndMemory(t *testing.T) {
	for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
	}
	if cpu, err := CPU(os.Getpid()); err != nil || cpu <= 0 {
		t.Errorf("processor time: %v, %v", cpu, err)
	}
	if m, err := Resident(os.Getpid()); err != nil || m.Now <= 0 || m.Peak < m.Now {
		t.Errorf("memory: %+v, %v", m, err)
	}
}

func TestBytesOfADirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "a/y"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 1000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Bytes(dir); err != nil || n != 2000 {
		t.Errorf("got %d, %v, want 2000", n, err)
	}
	if err := Forget(dir); err != nil {
		t.Error(err)
	}
}

func TestPortsInUseAreLeftOut(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	used := ln.Addr().(*net.TCPAddr).Port
	from := used - 2
	first, err := Ports(from, 4)
	if err != nil || first <= used {
		t.Errorf("from %d on, with %d in use: got %d, %v", from, used, first, err)
	}
}
