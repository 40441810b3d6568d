// Command tidemark-scenario draws a story of the replication protocol as a picture:
// one SVG file with a lane for each replica, that any browser shows.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemark-io/tidemark/internal/story"
	"github.com/tidemark-io/tidemark/internal/story/picture"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "tidemark-scenario: "+err.Error())
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "tidemark-scenario FILE",
		Short: "Draw a story of the replication protocol as an SVG picture",
		Long: `Draw a story of the replication protocol as an SVG picture.

The stories are in pkg/replica/core/testdata, whose README.md explains their language.
Stories whose names end in _off take a safety rule away to show the harm that it
prevents; they need a build with the tag mutants:

  go run -tags mutants ./cmd/tidemark-scenario -o s1a_off.svg pkg/replica/core/testdata/s1a_off.txt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d files given, want one story: tidemark-scenario [-o PICTURE.svg] FILE.txt", len(args))
			}
			return nil
		},
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			return render(args[0], output, c.OutOrStdout())
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "file to write; standard output if empty")
	return c
}

// render plays the story in file and writes its picture.
func render(file, output string, stdout io.Writer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the story: %w", err)
	}
	s, err := story.Run(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	svg := picture.Render(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), s)
	if output == "" {
		_, err := io.Copy(stdout, bytes.NewReader(svg))
		return err
	}
	if err := os.WriteFile(output, svg, 0o644); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}
