package controllers

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// here selects the world's namespace.
func (w *simWorld) here() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.rp.Namespace}}
}

// made creates objects until gone is called, once or more often.
func (w *simWorld) made(objs ...client.Object) (gone func()) {
	w.t.Helper()
	for _, obj := range objs {
		w.must(w.api.Create(w.ctx(), obj))
	}
	return func() {
		for _, obj := range objs {
			w.must(client.IgnoreNotFound(w.api.Delete(w.ctx(), obj)))
		}
	}
}

func matches(w *simWorld, resource string, on ...admissionv1.OperationType) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{NamespaceSelector: w.here(), ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{Operations: on, Rule: admissionv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}}}}}}
}

// A LimitRange forbids, and is no missing permission.
func TestALimitRangeIsToldInItsOwnWords(t *testing.T) {
	w, o := served(t, replicas(1))
	gone := w.made(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: w.rp.Namespace, Name: "small"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}}}})
	w.inForce()
	scaleTo(3)(w)
	w.stuck(o, v1alpha1.ReasonApplyFailed, "Pod orders-1", "maximum memory usage per Pod is 1Mi")
	w.servesStill()
	gone()
	w.heals(o)
}

// A policy may say anything, also what sounds like a missing permission.
func TestAPolicyThatDeniesIsToldInItsOwnWords(t *testing.T) {
	w, o := served(t, replicas(1))
	name := w.rp.Namespace
	gone := w.made(&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail), MatchConstraints: matches(w, "pods", admissionv1.Create),
		Validations: []admissionv1.Validation{{Expression: "false", Message: "you cannot have a resource on a Sunday", Reason: ptr.To(metav1.StatusReasonForbidden)}}}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}})
	defer gone()
	w.inForce()
	scaleTo(3)(w)
	w.stuck(o, v1alpha1.ReasonApplyFailed, "Pod orders-1", "on a Sunday")
	w.servesStill()
	gone()
	w.heals(o)
}

// inForce waits until the API server goes by what was made: a pod is refused.
func (w *simWorld) inForce() {
	w.t.Helper()
	await(w.t, "it to be in force", func() string {
		if err := w.api.Create(w.ctx(), w.probe(), client.DryRunAll); err == nil {
			return "a pod is admitted"
		}
		return ""
	})
}

func (w *simWorld) probe() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.rp.Namespace, Name: "probe"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "probe", Image: "example.test/probe"}}}}
}

// A webhook that cannot be reached fails the calls: its name is told, and they are made again.
func TestAWebhookThatIsAwayIsNamed(t *testing.T) {
	w, o := served(t, replicas(1))
	gone := w.made(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: w.rp.Namespace}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "pods.example.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionv1.SideEffectClassNone),
		FailurePolicy: ptr.To(admissionv1.Fail), NamespaceSelector: w.here(), TimeoutSeconds: ptr.To[int32](1),
		ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}}})
	defer gone()
	w.inForce()
	scaleTo(3)(w)
	await(t, "the webhook to be named", func() string {
		w.step()
		if _, err := o.look(t.Context(), w.request()); err == nil {
			return "nothing failed"
		}
		return w.says(v1alpha1.ConditionProgressing, "False", v1alpha1.ReasonApplyFailed, "pods.example.test")
	})
	w.servesStill()
	gone()
	w.heals(o)
}

// What a policy makes of our objects is not fought over: the partition serves, no pod is made
// anew, and what is applied again changes nothing, so that it wakes nobody.
func TestAPolicyThatChangesObjectsIsNotFought(t *testing.T) {
	w, o := served(t, replicas(1))
	name := w.rp.Namespace
	policy := func(kind, patch string) []client.Object {
		return []client.Object{
			&admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name + kind}, Spec: admissionv1.MutatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
				MatchConstraints: matches(w, kind, admissionv1.Create, admissionv1.Update),
				Mutations:        []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: patch}}}}},
			&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name + kind}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name + kind}},
		}
	}
	objs := append(policy("services", `Object{spec: Object.spec{publishNotReadyAddresses: false}}`),
		policy("pods", `Object{metadata: Object.metadata{labels: {"team": "logs"}}, spec: Object.spec{terminationGracePeriodSeconds: 7}}`)...)
	defer w.made(objs...)()
	await(t, "the policies to be in force", func() string {
		pod := w.probe()
		w.must(w.api.Create(w.ctx(), pod, client.DryRunAll))
		if pod.Labels["team"] != "logs" {
			return "a pod is as it was asked for"
		}
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.rp.Namespace, Name: "probe"},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}, PublishNotReadyAddresses: true}}
		w.must(w.api.Create(w.ctx(), svc, client.DryRunAll))
		if svc.Spec.PublishNotReadyAddresses {
			return "a Service is as it was asked for"
		}
		return ""
	})
	scaleTo(3)(w)
	w.remove(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "orders-replicas"}})
	for range 60 {
		w.step()
		_, err := o.look(t.Context(), w.request())
		w.must(err)
		w.clock.advance(time.Second)
	}
	if why := w.serves(); why != "" {
		t.Error(why)
	}
	svc := &corev1.Service{}
	w.must(w.api.Get(t.Context(), w.key("orders-replicas"), svc))
	version := svc.ResourceVersion
	pod := &corev1.Pod{}
	w.must(w.api.Get(t.Context(), w.key("orders-2"), pod))
	if pod.Labels["team"] != "logs" || svc.Spec.PublishNotReadyAddresses {
		t.Fatalf("the policies did nothing: %v, %v", pod.Labels, svc.Spec.PublishNotReadyAddresses)
	}
	uid := pod.UID
	for range 20 {
		w.step()
		res, err := o.look(t.Context(), w.request())
		w.must(err)
		w.clock.advance(max(res.RequeueAfter, 10*time.Second))
	}
	w.must(w.api.Get(t.Context(), w.key("orders-replicas"), svc))
	w.must(w.api.Get(t.Context(), w.key("orders-2"), pod))
	if svc.ResourceVersion != version || pod.UID != uid {
		t.Errorf("the Service went from version %s to %s, the pod from %s to %s: each change wakes the operator again", version, svc.ResourceVersion, uid, pod.UID)
	}
}
