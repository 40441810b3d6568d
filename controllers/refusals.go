package controllers

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// This file tells what the API server's refusals mean for a person. They are no failures of
// the operator: the same request is made again after a while, in case the surroundings have
// been mended, and everything else goes on.

// refused reports that the API server said no, and will say so again until something else
// changes.
func refused(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) }

// unauthorized is how the API server's authorizer says no. Policies and webhooks forbid in words
// of their own.
var unauthorized = regexp.MustCompile(`User "[^"]*" cannot \S+ resource "`)

// reasonOf is the condition reason for an error of the API server.
func reasonOf(err error) string {
	text := err.Error()
	switch {
	case !apierrors.IsForbidden(err):
		return v1alpha1.ReasonApplyFailed
	case strings.Contains(text, "exceeded quota"):
		return v1alpha1.ReasonQuotaExceeded
	case unauthorized.MatchString(text), strings.Contains(text, "attempting to grant RBAC permissions"):
		return v1alpha1.ReasonPermissionMissing
	}
	return v1alpha1.ReasonApplyFailed
}

// remedies say what to do about it.
var remedies = map[string]string{
	v1alpha1.ReasonQuotaExceeded:        "; raise the quota, or ask for less",
	v1alpha1.ReasonPermissionMissing:    "; the operator's role lacks this: install the role of its chart, or of config/rbac",
	v1alpha1.ReasonStorageResizeRefused: "; use a storage class that allows expansion, or take spec.storage.size back",
}

// tellRefusal is what the Progressing condition says of an object that was refused.
func tellRefusal(obj client.Object, reason string, err error) *Progress {
	return &Progress{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf("%s was refused: %v%s", describe(obj), err, remedies[reason])}
}
