// Command chart generates what follows from the Helm chart: the table of values in its
// README, and the manifests for those who do without Helm. `make manifests` runs it.
//
//	chart readme DIR            writes the values of DIR/values.yaml into DIR/README.md
//	chart manifests <RENDERING  writes config/operator and dist/install.yaml
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader) error {
	switch {
	case len(args) == 2 && args[0] == "readme":
		return readme(args[1])
	case len(args) == 1 && args[0] == "manifests":
		rendering, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("read the rendering: %w", err)
		}
		return manifests(string(rendering))
	}
	return fmt.Errorf("want readme DIR, or manifests with a rendering on standard input; got %q", args)
}

func readme(dir string) error {
	values, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "README.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	parsed, err := parse(string(values))
	if err != nil {
		return fmt.Errorf("%s/values.yaml: %w", dir, err)
	}
	next, err := insert(string(page), table(parsed))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(next), 0o644)
}
