// Package chart tests what installs Tidemark: the Helm chart, the kustomize bases in
// config, and dist/install.yaml. It renders with the same helm and kubectl that
// developers use, and applies to a real API server what one can judge better than a
// reader: permissions, Pod Security, upgrades from an earlier chart, uninstalling.
//
// testdata holds the packaged charts of earlier versions. A new version of the chart adds
// the one before it (helm package), and earlierCharts names it.
//
// It holds tests only. They need the binaries that `make lab` builds
// (KUBEBUILDER_ASSETS).
package chart
