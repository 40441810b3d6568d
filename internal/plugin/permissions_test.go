package plugin

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// allow gives the lab's user without rights these in a namespace: "verb,verb resource.group".
func allow(t *testing.T, namespace string, rights ...string) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "plugin"}}
	for _, r := range rights {
		verbs, resource, _ := strings.Cut(r, " ")
		resource, group, _ := strings.Cut(resource, ".")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: strings.Split(verbs, ",")})
	}
	if err := lab.api.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: plainUser}}}
	binding.ResourceVersion, binding.UID = "", ""
	if err := lab.api.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// disallow takes them back.
func disallow(t *testing.T, namespace string) {
	t.Helper()
	o := metav1.ObjectMeta{Namespace: namespace, Name: "plugin"}
	if err := errors.Join(lab.api.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: o}), lab.api.Delete(t.Context(), &rbacv1.Role{ObjectMeta: o})); err != nil {
		t.Error(err)
	}
}

// The table of docs/operations/plugin.md: with these rights, and no others, each command works.
func TestTheDocumentedPermissionsAreEnough(t *testing.T) {
	const (
		partitions = "replicatedpartitions.tidemark.io"
		leases     = "get leases.coordination.k8s.io"
		forward    = "get,create pods/portforward"
	)
	p := newPartition(t, 1)
	p.setStatus(p.project(p.record()))
	for _, c := range []struct {
		name   string
		args   []string
		rights []string
	}{
		{"status", []string{"status"}, []string{"list " + partitions}},
		{"promote", []string{"promote", "orders", "0"}, nil},
		{"produce", []string{"produce", "orders"}, []string{leases, forward}},
		{"consume", []string{"consume", "orders"}, []string{leases, forward}},
		{"describe-record", []string{"describe-record", "orders"}, []string{leases}},
		{"verify", []string{"verify", "orders"}, []string{"list pods", forward}},
		{"report", []string{"report", "orders", "--operator-namespace", p.rp.Namespace, "--file", filepath.Join(t.TempDir(), "report.tar.gz")},
			[]string{leases, "list pods", "list persistentvolumeclaims", "list events", "get pods/log", forward}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := p.rp.Namespace
			args := slices.Concat(c.args, []string{"--as", plainUser})
			// The API server learns of roles, and of their end, from a watch.
			await(t, "to be forbidden", func() error {
				if out, errOut, code := run(t, ns, "one\n", args...); code != 1 || !strings.Contains(errOut, "docs/operations/plugin.md lists the permissions") {
					return errText(out + errOut)
				}
				return nil
			})
			allow(t, ns, append(c.rights, "get "+partitions)...)
			defer disallow(t, ns)
			await(t, "to be allowed", func() error {
				if i := slices.Index(args, "--file"); i > 0 { // the one before stays
					args[i+1] = filepath.Join(t.TempDir(), "report.tar.gz")
				}
				_, errOut, code := run(t, ns, "one\n", args...)
				if code == 0 && !strings.Contains(errOut, "forbidden") {
					return nil
				}
				return errText(errOut)
			})
		})
	}
}

type errText string

func (e errText) Error() string { return string(e) }

// Watching and asking for a promotion need more than to look.
func TestThePermissionsOfPromote(t *testing.T) {
	p := withStatus(t)
	allow(t, p.rp.Namespace, "get,watch,patch replicatedpartitions.tidemark.io")
	await(t, "to be allowed", func() error {
		_, errOut, _ := run(t, p.rp.Namespace, "", "promote", "orders", "1", "--timeout", "1s", "--as", plainUser)
		if strings.Contains(errOut, "orders-1 does not lead after 1s") && !strings.Contains(errOut, "forbidden") {
			return nil
		}
		return errText(errOut)
	})
	if _, set := p.read().Annotations[v1alpha1.AnnotationPromote]; set {
		t.Error("the annotation is still there")
	}
}
