package kstatus

import (
	"fmt"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/holdfast-storage/holdfast/deploy/argocd"
)

// ArgoCD returns what Argo CD shows of an object with the health script of deploy/argocd. The interpreter is Argo CD's own.
func ArgoCD(t testing.TB, o runtime.Object) (health, message string) {
	t.Helper()
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", value(l, Unstructured(t, o).Object))
	if err := l.DoString(argocd.Health); err != nil {
		t.Fatalf("the health script fails: %v", err)
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the health script answers with %s", l.Get(-1).Type())
	}
	return lua.LVAsString(answer.RawGetString("status")), lua.LVAsString(answer.RawGetString("message"))
}

// value is a value of an object for Lua.
func value(l *lua.LState, v any) lua.LValue {
	switch x := v.(type) {
	case nil:
		return lua.LNil
	case string:
		return lua.LString(x)
	case bool:
		return lua.LBool(x)
	case int64:
		return lua.LNumber(x)
	case float64:
		return lua.LNumber(x)
	case []any:
		table := l.NewTable()
		for _, item := range x {
			table.Append(value(l, item))
		}
		return table
	case map[string]any:
		table := l.NewTable()
		for key, item := range x {
			table.RawSetString(key, value(l, item))
		}
		return table
	default:
		panic(fmt.Sprintf("%T is no value of an object", v))
	}
}
