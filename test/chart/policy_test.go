package chart

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const (
	recordsNamespace = "records"
	operatorUser     = "system:serviceaccount:" + namespace + ":tidemark-operator"
	collectorUser    = "system:serviceaccount:kube-system:generic-garbage-collector"
	// human may do all that RBAC knows.
	human = "human"
)

// as is a client of that user.
func as(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	cfg := rest.CopyConfig(api.config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	if user == human {
		cfg.Impersonate.Groups = append(cfg.Impersonate.Groups, "system:masters")
	}
	return kubernetes.NewForConfigOrDie(cfg)
}

// recordLease is a Lease as the operator makes it for a partition, as far as the policy looks.
func recordLease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tidemark.io/partition": name},
			Annotations:     map[string]string{"tidemark.io/state": "{}", "tidemark.io/partition-epoch": "9", "tidemark.io/progress": "{}"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "tidemark.io/v1alpha1", Kind: "ReplicatedPartition", Name: name, UID: "1"}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(name + "-0"), LeaseTransitions: ptr.To[int32](4)},
	}
}

// protectRecords installs the chart's policy, with its operator's permissions, and lets every
// user write Leases, so that nothing but the policy refuses. It returns what takes it away.
func protectRecords(t *testing.T) (remove func()) {
	t.Helper()
	var texts string
	makeNamespaces(t, recordsNamespace)
	all := render(t, chartDir)
	for _, k := range []string{"ClusterRole /tidemark-operator", "ClusterRoleBinding /tidemark-operator",
		"ValidatingAdmissionPolicy /tidemark-records", "ValidatingAdmissionPolicyBinding /tidemark-records"} {
		text, err := yaml.Marshal(all.must(t, k).Object)
		if err != nil {
			t.Fatal(err)
		}
		texts += "---\n" + string(text)
	}
	mustRun(t, texts, "kubectl", "apply", "-f", "-")
	rbac := api.client.RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "leases"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "leases"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "leases"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}}}
	if _, err := rbac.Roles(recordsNamespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.RoleBindings(recordsNamespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() { mustRun(t, texts, "kubectl", "delete", "-f", "-") }
}

// awaitPolicy waits until the API server goes by the policy: it learns of it by a watch.
func awaitPolicy(t *testing.T) {
	t.Helper()
	leases := api.client.CoordinationV1().Leases(recordsNamespace)
	if _, err := leases.Create(t.Context(), recordLease("probe"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(patience)
	for {
		err := leases.Delete(t.Context(), "probe", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal("the policy does not come into force")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestRecordsAreProtected(t *testing.T) {
	if api == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
	defer protectRecords(t)()
	awaitPolicy(t)
	replica := func(of string) string { return "system:serviceaccount:" + recordsNamespace + ":" + of + "-replica" }
	raise := func(l *coordinationv1.Lease) {
		l.Annotations["tidemark.io/partition-epoch"], l.Annotations["tidemark.io/state"] = "10", `{"a":1}`
		l.Spec.LeaseTransitions, l.Spec.HolderIdentity = ptr.To[int32](5), ptr.To("log-1")
	}
	partitionBack := func(l *coordinationv1.Lease) { l.Annotations["tidemark.io/partition-epoch"] = "8" }
	leaderBack := func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To[int32](3) }
	noState := func(l *coordinationv1.Lease) { delete(l.Annotations, "tidemark.io/state") }
	noEpoch := func(l *coordinationv1.Lease) { delete(l.Annotations, "tidemark.io/partition-epoch") }
	unlabel := func(l *coordinationv1.Lease) { l.Labels = nil }
	disown := func(l *coordinationv1.Lease) { l.OwnerReferences = nil }
	finalizer := func(l *coordinationv1.Lease) { l.Finalizers = []string{"example.test/stay"} }
	heartbeat := func(l *coordinationv1.Lease) {
		l.Spec.RenewTime, l.Annotations["tidemark.io/progress"] = &metav1.MicroTime{Time: time.Now()}, `{"hw":1}`
	}
	foreign := func(l *coordinationv1.Lease) { l.Annotations["example.test/note"], l.Labels["team"] = "x", "y" }
	foreignNote := func(l *coordinationv1.Lease) { l.Labels["team"] = "x" }
	restore := func(l *coordinationv1.Lease) {
		l.Annotations, l.Spec = recordLease("log").Annotations, recordLease("log").Spec
	}
	for _, tc := range []struct {
		name, user string
		change     func(*coordinationv1.Lease) // nil deletes
		refusal    string                      // "" is allowed
	}{
		{"the operator raises epochs", operatorUser, raise, ""},
		{"a replica raises epochs", replica("log"), raise, ""},
		{"a replica renews", replica("log"), heartbeat, ""},
		{"the operator may put owners right", operatorUser, disown, ""},
		{"the collector takes owners away, as for an orphan", collectorUser, disown, ""},
		{"the collector deletes", collectorUser, nil, ""},
		{"the namespace controller deletes", "system:serviceaccount:kube-system:namespace-controller", nil, ""},
		{"a person may note things", human, foreign, ""},

		{"the operator lets the partition epoch go back", operatorUser, partitionBack, "never go back"},
		{"a replica lets the partition epoch go back", replica("log"), partitionBack, "never go back"},
		{"a replica lets the leader epoch go back", replica("log"), leaderBack, "never go back"},
		{"a person lets the leader epoch go back", human, leaderBack, "never go back"},
		{"the operator takes the epoch away", operatorUser, noEpoch, "never go back"},
		{"a replica takes the state away", replica("log"), noState, "cannot be removed"},
		{"a person raises epochs", human, raise, "only the operator and the partition's replicas"},
		{"another partition's replica raises epochs", replica("other"), raise, "only the operator and the partition's replicas"},
		{"a person renews", human, heartbeat, "only the operator and the partition's replicas"},
		{"a person takes the label away", human, unlabel, "owners, finalizers and the partition's label"},
		{"a person takes the owner away", human, disown, "owners, finalizers and the partition's label"},
		{"a replica adds a finalizer", replica("log"), finalizer, "owners, finalizers and the partition's label"},
		{"a person deletes", human, nil, "goes with its ReplicatedPartition"},
		{"a replica deletes", replica("log"), nil, "goes with its ReplicatedPartition"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := attempt(t, tc.user, recordLease("log"), tc.change)
			switch {
			case tc.refusal == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.refusal)):
				t.Errorf("got %v; want a refusal with %q", err, tc.refusal)
			}
		})
	}
	t.Run("a Lease that the user has unprotected", func(t *testing.T) {
		for _, change := range []func(*coordinationv1.Lease){leaderBack, disown, noState, nil} {
			l := recordLease("log")
			l.Annotations["tidemark.io/unprotected"] = "true"
			if err := attempt(t, human, l, change); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("unprotecting is for everyone who may write the Lease", func(t *testing.T) {
		if err := attempt(t, human, recordLease("log"), func(l *coordinationv1.Lease) { l.Annotations["tidemark.io/unprotected"] = "true" }); err != nil {
			t.Error(err)
		}
	})
	t.Run("a Lease that has lost what the policy reads", func(t *testing.T) {
		for _, odd := range []func(*coordinationv1.Lease){
			func(l *coordinationv1.Lease) { l.Annotations = nil },
			func(l *coordinationv1.Lease) { l.Annotations["tidemark.io/partition-epoch"] = "nine" },
			func(l *coordinationv1.Lease) { l.Spec = coordinationv1.LeaseSpec{} },
		} {
			for user, change := range map[string]func(*coordinationv1.Lease){
				collectorUser: disown, human: foreignNote, operatorUser: restore, replica("log"): restore,
			} {
				l := recordLease("log")
				odd(l)
				if err := attempt(t, user, l, change); err != nil {
					t.Errorf("%s: %v", user, err)
				}
			}
			l := recordLease("log")
			odd(l)
			if err := attempt(t, human, l, nil); !apierrors.IsForbidden(err) {
				t.Errorf("a person deletes it: %v", err)
			}
		}
	})
	t.Run("collections", func(t *testing.T) {
		leases := api.client.CoordinationV1().Leases(recordsNamespace)
		if _, err := leases.Create(t.Context(), recordLease("log"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, user := range []string{human, "system:serviceaccount:kube-system:namespace-controller"} {
			err := as(t, user).CoordinationV1().Leases(recordsNamespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "tidemark.io/partition=log"})
			if (err != nil) != (user == human) {
				t.Errorf("%s: %v", user, err)
			}
		}
	})
	t.Run("Leases of others", func(t *testing.T) {
		l := recordLease("log")
		l.Labels = nil
		if err := attempt(t, human, l, leaderBack); err != nil {
			t.Error(err)
		}
	})
}

// attempt makes the Lease, and changes or deletes it as that user.
func attempt(t *testing.T, user string, l *coordinationv1.Lease, change func(*coordinationv1.Lease)) error {
	t.Helper()
	admin := api.client.CoordinationV1().Leases(recordsNamespace)
	made, err := admin.Create(t.Context(), l, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		collector := as(t, collectorUser).CoordinationV1().Leases(recordsNamespace)
		if err := collector.Delete(context.WithoutCancel(t.Context()), l.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}()
	mine := as(t, user).CoordinationV1().Leases(recordsNamespace)
	if change == nil {
		return mine.Delete(t.Context(), l.Name, metav1.DeleteOptions{})
	}
	change(made)
	_, err = mine.Update(t.Context(), made, metav1.UpdateOptions{})
	return err
}
