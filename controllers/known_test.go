package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestKnownForgetsWhatANameMeantBefore(t *testing.T) {
	k := newKnown()
	name := types.NamespacedName{Namespace: "shop", Name: "orders"}
	var forgotten []types.UID
	forget := func(uid types.UID) { forgotten = append(forgotten, uid) }
	k.meet(name, "a", forget)
	k.meet(name, "a", forget)
	if len(forgotten) != 0 {
		t.Errorf("forgot %v while it was there", forgotten)
	}
	k.meet(name, "b", forget)
	if len(forgotten) != 1 || forgotten[0] != "a" {
		t.Errorf("forgot %v, want a, which was made anew as b", forgotten)
	}
	if uid, ok := k.leave(name); !ok || uid != "b" {
		t.Errorf("got %s, %t; want b", uid, ok)
	}
	if _, ok := k.leave(name); ok {
		t.Error("left twice")
	}
}
