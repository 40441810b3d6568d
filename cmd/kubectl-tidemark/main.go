// Command kubectl-tidemark is a plugin of kubectl: with it in the PATH there is `kubectl
// tidemark`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-io/tidemark/internal/plugin"
)

func main() {
	plugin.Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := plugin.Run(ctx, plugin.Standard(), os.Args[1:])
	stop()
	os.Exit(code)
}
