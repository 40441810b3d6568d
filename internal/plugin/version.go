package plugin

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// Version is set by the linker in a release.
var Version string

func versionCommand(b *base) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Tell the version of this plugin",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(b.Out, "kubectl-tidemark %s, API %s, %s %s/%s\n", version(), v1alpha1.GroupVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

func version() string {
	if Version != "" {
		return Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
