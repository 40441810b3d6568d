package controllers

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
	"github.com/tidemark-io/tidemark/pkg/epoch"
)

// outcome is what came of a plan.
type outcome struct {
	// err is the first error; what came after it was still tried unless it depends on
	// it.
	err error
	// refused is set if the API server refused an object for good.
	refused *Progress
	// recordChanged tells that the record was changed: it is looked at again at once.
	recordChanged bool
}

// apply carries out a plan in its order. Changes of the record come first. A failed
// one ends the run, since the rest was planned on the record; a refused object does
// not keep the others from being applied, but an API server that does not answer, or
// asks for patience, is not asked for more.
func (r *Reconciler) apply(ctx context.Context, o *Observation, p Plan) outcome {
	var out outcome
	for _, a := range p.Actions {
		stop, err := r.carryOut(ctx, o, a, &out)
		if refused(err) {
			reason := reasonOf(err)
			out.refuse(&Progress{Status: metav1.ConditionFalse, Reason: reason, Message: err.Error() + remedies[reason]})
			err = nil
		}
		if err != nil && out.err == nil {
			out.err = err
		}
		if stop || overloaded(err) {
			return out
		}
	}
	return out
}

// carryOut does one action and reports whether the rest of the plan is void.
func (r *Reconciler) carryOut(ctx context.Context, o *Observation, a Action, out *outcome) (bool, error) {
	rp := o.Partition
	switch a := a.(type) {
	case CreateRecord:
		var err error
		out.recordChanged, err = r.createRecord(ctx, rp)
		return true, err
	case Adopt:
		return true, r.adoptLog(ctx, rp, a)
	case RemakeRecord:
		return true, r.remakeRecord(ctx, rp, a)
	case AskReports:
		err := r.askReports(ctx, rp, a)
		out.recordChanged = err == nil
		return true, ignoreOvertaken(err)
	case Recover:
		rec, err := r.recover(ctx, rp, a)
		out.recordChanged = err == nil
		if err == nil {
			r.recovered(ctx, rp, rec)
		}
		return true, ignoreOvertaken(err)
	case Elect:
		rec, err := r.elect(ctx, rp, a)
		out.recordChanged = err == nil
		if err == nil {
			r.electionHeld(ctx, rp, rec, a)
		}
		return true, ignoreOvertaken(err)
	case Switchover:
		rec, err := r.switchover(ctx, rp, a)
		out.recordChanged = err == nil
		if err == nil {
			r.transition(rp, int64(rec.PartitionEpoch), normal, v1alpha1.EventSwitchoverRequested, "%s", tellSwitchover(rp, rec.Leader, a.To))
		}
		return err != nil, ignoreOvertaken(err)
	case Withdraw:
		err := r.withdraw(ctx, rp, a)
		out.recordChanged = err == nil
		return err != nil, ignoreOvertaken(err)
	case Assign:
		_, err := r.assign(ctx, rp, a)
		out.recordChanged = err == nil
		return err != nil, ignoreOvertaken(err)
	case Apply:
		if a.releases() {
			// Who drops the replica from the record goes by this mark.
			err := r.applyRelease(ctx, o, a)
			return err != nil, ignoreOvertaken(err)
		}
		return false, out.classify(a, r.applyObject(ctx, a))
	case Remove:
		return false, r.deleteExactly(ctx, a.Object)
	case CreatePod:
		err := r.createPod(ctx, o, a)
		if refused(err) {
			out.refuse(tellRefusal(o.Desired.Pods[a.ID], reasonOf(err), err))
			err = nil
		}
		return false, err
	case DeletePod:
		return false, r.deletePod(ctx, o, a)
	case DeleteClaim:
		return false, r.deleteClaim(ctx, o, a)
	}
	return true, fmt.Errorf("unknown action %T: this is a fault of the operator", a)
}

// ignoreOvertaken drops what is no failure: the record moved on, or a rule said no
// on the newer record. The next reconcile judges anew.
func ignoreOvertaken(err error) error {
	var refusal *epoch.Refusal
	if errors.Is(err, errOvertaken) || errors.Is(err, epoch.ErrNoChange) || errors.As(err, &refusal) {
		return nil
	}
	return err
}

// classify keeps a refusal of the API server for the status, where repeating it
// would not help.
func (out *outcome) classify(a Apply, err error) error {
	if !refused(err) {
		return err
	}
	reason := reasonOf(err)
	if _, claim := a.Desired.(*corev1.PersistentVolumeClaim); claim && a.Live != nil && reason == v1alpha1.ReasonApplyFailed {
		reason = v1alpha1.ReasonStorageResizeRefused
	}
	out.refuse(tellRefusal(a.Desired, reason, err))
	return nil
}

// refuse keeps the first refusal.
func (out *outcome) refuse(p *Progress) {
	if out.refused == nil {
		out.refused = p
	}
}

// progress is the plan's, unless something went wrong in applying it.
func (out *outcome) progress(p Plan) Progress {
	switch {
	case out.refused != nil:
		return *out.refused
	case out.err != nil && !isConflict(out.err):
		reason := reasonOf(out.err)
		return Progress{Status: metav1.ConditionFalse, Reason: reason, Message: out.err.Error() + remedies[reason], Passing: true}
	}
	return p.Progress
}

// isConflict reports whether err is a lost race, to be run again without a word.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || errors.Is(err, epoch.ErrConflict)
}
