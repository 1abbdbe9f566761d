package waits

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	some := Default()
	some.AgentSilent, some.HostDead = 10*time.Second, 30*time.Second
	for text, want := range map[string]Waits{
		"":                                Default(),
		" ":                               Default(),
		"agentSilent=15s":                 Default(),
		"agentSilent=10s,hostDead=30s":    some,
		" hostDead=0.5m, agentSilent=10s": some,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v", text, got, err)
		}
	}
}

func TestParse_bad(t *testing.T) {
	for text, want := range map[string]string{
		"agentQuiet=10s":                  "names agentSilent, hostDead,",
		"AgentSilent=10s":                 "names agentSilent, hostDead,",
		"agentSilent":                     "such as agentSilent=15s; the names are agentSilent, hostDead,",
		"agentSilent=":                    "must be above 0",
		"agentSilent=10":                  "must be above 0",
		"agentSilent=0s":                  "must be above 0",
		"agentSilent=-10s":                "must be above 0",
		"hostDead=30s,":                   "NAME=DURATION",
		"hostDead=30s agentSilent=10s":    "must be above 0",
		"hostDead=30s,,agentSilent=10s":   "NAME=DURATION",
		"agentSilent=10s,agentSilent=15s": "sets agentSilent twice",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) || got != (Waits{}) {
			t.Errorf("Parse(%q) = %+v, %v", text, got, err)
		}
	}
}

func TestOrDefault(t *testing.T) {
	got := Waits{HostDead: time.Second}.OrDefault()
	if got.HostDead != time.Second || got.AgentSilent != 15*time.Second {
		t.Errorf("%+v", got)
	}
	if got != got.OrDefault() {
		t.Error("it changes when it is asked for again")
	}
}

func TestString(t *testing.T) {
	const text = "hostDead=30s,monSlow=1m0s"
	if w, err := Parse(text); err != nil || w.String() != text {
		t.Errorf("%q, %v", w.String(), err)
	}
	if (Waits{}).String() != "" || Default().String() != "" {
		t.Error("the defaults are told")
	}
}

// TestList_hasAllFields: each field is in the list once, by its name.
func TestList_hasAllFields(t *testing.T) {
	var w Waits
	fields := reflect.TypeFor[Waits]()
	if len(List()) != fields.NumField() {
		t.Errorf("%d in the list, and %d fields", len(List()), fields.NumField())
	}
	for i, x := range List() {
		name := fields.Field(i).Name
		if !strings.EqualFold(x.Name, name) || x.Default <= 0 || x.Meaning == "" {
			t.Errorf("field %s: %+v", name, x)
		}
		*x.field(&w)++
		if *x.field(&w) != 1 || reflect.ValueOf(w).Field(i).Int() != 1 {
			t.Errorf("%s is the field of another one", x.Name)
		}
	}
}

func TestPage_isFresh(t *testing.T) {
	have, err := os.ReadFile("../../docs/reference/waits.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Page(), string(have)); diff != "" {
		t.Errorf("docs/reference/waits.md is not what waits.go says: run 'make generate'\n%s", diff)
	}
}
