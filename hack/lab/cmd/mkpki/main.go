// Mkpki writes, with the standard library only, everything that a throw-away
// Kubernetes control plane needs: one CA, server and client certificates, the
// service-account key and one kubeconfig per component.
//
//	mkpki -dir DIR -server https://198.18.254.1:6443 -ips 127.0.0.1,198.18.254.1,198.19.0.1 -nodes node1=198.18.254.11,node2=198.18.254.12
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
)

func main() {
	dir := flag.String("dir", "pki", "output `directory`")
	server := flag.String("server", "https://127.0.0.1:6443", "API server's `URL` for the kubeconfigs")
	nodes := flag.String("nodes", "", "comma-separated `name=IP` list, one kubelet each")
	ips := flag.String("ips", "127.0.0.1", "comma-separated `IPs` for the API server's certificate")
	flag.Parse()
	if err := run(*dir, *server, split(*nodes), split(*ips)); err != nil {
		fmt.Fprintln(os.Stderr, "mkpki:", err)
		os.Exit(1)
	}
}

func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

// run issues everything for one cluster into dir.
func run(dir, server string, nodes, ips []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	apiIPs, err := parseIPs(ips)
	if err != nil {
		return err
	}
	ca, err := newAuthority(dir)
	if err != nil {
		return err
	}
	certs := []certificate{
		{file: "apiserver", name: "kube-apiserver", ips: apiIPs, dns: []string{"localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}},
		{file: "kubelet-client", name: "kube-apiserver-kubelet-client", group: "system:masters"},
		{file: "front-proxy-client", name: "front-proxy-client"},
	}
	users := []certificate{
		{file: "admin", name: "admin", group: "system:masters"},
		{file: "controller-manager", name: "system:kube-controller-manager"},
		{file: "scheduler", name: "system:kube-scheduler"},
		{file: "kube-proxy", name: "system:kube-proxy"},
	}
	for _, n := range nodes {
		name, ip, _ := strings.Cut(n, "=")
		nodeIPs, err := parseIPs([]string{ip, "127.0.0.1"})
		if err != nil {
			return fmt.Errorf("node %q: %w", n, err)
		}
		id := certificate{file: name, name: "system:node:" + name, group: "system:nodes"}
		users = append(users, id)
		id.file, id.dns, id.ips = name+"-server", []string{name}, nodeIPs
		certs = append(certs, id)
	}
	for _, c := range certs {
		if _, err := ca.issue(c); err != nil {
			return fmt.Errorf("certificate %s: %w", c.file, err)
		}
	}
	for _, u := range users {
		if err := ca.kubeconfig(u, server); err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", u.file, err)
		}
	}
	return ca.serviceAccountKey()
}

func parseIPs(texts []string) ([]net.IP, error) {
	var ips []net.IP
	for _, t := range texts {
		ip := net.ParseIP(t)
		if ip == nil {
			return nil, fmt.Errorf("%q is no IP address", t)
		}
		ips = append(ips, ip)
	}
	return ips, nil
}
