// Command manager is Tidemark's operator. It runs in the cluster, where the Helm
// chart puts it; for trying things out it also runs outside, with a kubeconfig.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}
