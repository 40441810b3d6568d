package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tale = "# a tale\ncluster 1 1\nstart A\nproduce A m\n"

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tale.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPictureGoesToStandardOutputOrAFile(t *testing.T) {
	file := write(t, tale)
	var out bytes.Buffer
	c := command()
	c.SetOut(&out)
	c.SetArgs([]string{file})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "<svg ") {
		t.Fatalf("standard output begins with %.40q", out.String())
	}
	svg := filepath.Join(t.TempDir(), "tale.svg")
	c = command()
	c.SetArgs([]string{"-o", svg, file})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(svg); err != nil || !bytes.Equal(b, out.Bytes()) {
		t.Errorf("the file differs from standard output (%v)", err)
	}
}

func TestErrorsAreOneLineAndSayWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no file", nil, "0 files given, want one story: tidemark-scenario"},
		{"two files", []string{"a", "b"}, "2 files given"},
		{"missing file", []string{filepath.Join(t.TempDir(), "none.txt")}, "no such file"},
		{"unknown flag", []string{"--colour", "x"}, "unknown flag"},
		{"broken story", []string{write(t, "cluster 1 1\nsing A\n")}, "line 2: sing A: no such command"},
		{"directory that is not there", []string{"-o", filepath.Join(t.TempDir(), "none", "x.svg"), write(t, tale)}, "write the picture"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := command()
			c.SetArgs(tc.args)
			err := c.Execute()
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, tc.want)
			}
		})
	}
}
