package conformance

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// recorder notes what a check finds.
type recorder struct {
	*testing.T
	found   []string
	formats map[string]bool
}

type stop struct{}

func (r *recorder) Errorf(format string, args ...any) {
	r.formats[format] = true
	r.found = append(r.found, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(stop{})
}

func (r *recorder) Fatal(args ...any) {
	r.formats[fmt.Sprint(args...)] = true
	r.Fatalf("%s", fmt.Sprint(args...))
}

// finds is what one check finds in a subject.
func finds(t *testing.T, c check, s Subject) *recorder {
	r := &recorder{T: t, formats: map[string]bool{}}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(stop{}) {
				panic(p)
			}
		}()
		c.run(newBench(r, &s))
	}()
	return r
}

// bad is a driver of which something is wrong.
type bad struct {
	engine.Driver
	plan    func(v *engine.View, now time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan
	observe func(context.Context) error
	perform func(engine.Command) error
	foresee func(before, after *engine.View, commands []engine.Command) any
	secrets bool
}

func (b *bad) Plan(v *engine.View, now time.Time) *engine.Plan {
	next := func(v *engine.View) *engine.Plan { return b.Driver.Plan(v, now) }
	if b.plan == nil {
		return next(v)
	}
	return b.plan(v, now, next)
}

func (b *bad) Observe(ctx context.Context, v *engine.View, s engine.SecretReader) (any, error) {
	if b.observe != nil {
		if err := b.observe(ctx); err != nil {
			return nil, err
		}
	}
	return b.Driver.Observe(ctx, v, s)
}

func (b *bad) Perform(ctx context.Context, v *engine.View, c engine.Command, s engine.SecretReader) error {
	if b.perform != nil {
		if err := b.perform(c); err != nil || c.Verb == "no such verb" {
			return err
		}
	}
	return b.Driver.Perform(ctx, v, c, s)
}

// patient is a driver that goes on with a command after its context has ended.
type patient struct{ engine.Driver }

func (p patient) Perform(ctx context.Context, v *engine.View, c engine.Command, s engine.SecretReader) error {
	if ctx.Err() != nil && c.Verb == "init" {
		select {} // for ever
	}
	return p.Driver.Perform(ctx, v, c, s)
}

func (b *bad) Foresee(before, after *engine.View, commands []engine.Command) any {
	if b.foresee != nil {
		return b.foresee(before, after, commands)
	}
	return b.Driver.Foresee(before, after, commands)
}

func (b *bad) MakeSecret(w engine.SecretWant) (map[string][]byte, error) {
	if b.secrets {
		return map[string][]byte{"x": []byte("x")}, nil
	}
	return b.Driver.MakeSecret(w)
}

// planning makes a driver that plans in a bad way.
func planning(plan func(v *engine.View, now time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan) func(engine.Driver) engine.Driver {
	return func(d engine.Driver) engine.Driver { return &bad{Driver: d, plan: plan} }
}

// spoiling makes a driver that plans well and then spoils its plan.
func spoiling(spoil func(v *engine.View, p *engine.Plan)) func(engine.Driver) engine.Driver {
	return planning(func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
		p := plan(v)
		spoil(v, p)
		return p
	})
}

// blind makes a driver that plans as if the hosts were otherwise.
func blind(change func(*api.Host)) func(engine.Driver) engine.Driver {
	return planning(func(v *engine.View, _ time.Time, plan func(*engine.View) *engine.Plan) *engine.Plan {
		x := *v
		x.Hosts = slices.Clone(v.Hosts)
		for i := range x.Hosts {
			change(&x.Hosts[i])
		}
		return plan(&x)
	})
}

// refusing makes a driver that never lets a host have a mode.
func refusing(mode api.HostMode) func(engine.Driver) engine.Driver {
	return spoiling(func(v *engine.View, p *engine.Plan) {
		for _, h := range v.Hosts {
			if h.ModeOf() == mode {
				p.Daemons, p.Remove, p.Done = nil, nil, false
				without(p, func(d api.Decision) bool { return d.Object == "host/"+h.Name })
				p.Decide(api.VerdictRefuse, api.ReasonUnknown, "host/"+h.Name, "it is never a good time")
			}
		}
	})
}

func without(p *engine.Plan, drop func(api.Decision) bool) {
	p.Decisions = slices.DeleteFunc(p.Decisions, drop)
}

var errAgain = errors.New("it is there already")

// impatient is how promptly the wrong drivers have to answer.
const impatient = 50 * time.Millisecond

// fault is a driver with one fault, the check that is to find it, and words of what it says then.
type fault struct {
	check, name string
	make        func(engine.Driver) engine.Driver
	want        string
}

// TestFaults: each check finds the drivers that it is there for, and nothing that the suite can find is there without a driver that
// shows it.
func TestFaults(t *testing.T) {
	defer func(was time.Duration) { promptly = was }(promptly)
	promptly = impatient
	shown := map[string]bool{}
	for _, test := range slices.Concat(faultsOfPlans, faultsOfChecks, faultsOfModes, faultsOfLies) {
		c := checks[slices.IndexFunc(checks, func(c check) bool { return c.name == test.check })]
		r := finds(t, c, subject(test.make))
		if !slices.ContainsFunc(r.found, func(s string) bool { return strings.Contains(s, test.want) }) {
			t.Errorf("%q finds nothing like %q in a driver that %s: %q", test.check, test.want, test.name, r.found)
		}
		maps.Copy(shown, r.formats)
		shown[test.check] = true
	}
	idle := subject(sound)
	idle.Refusals = nil
	maps.Copy(shown, finds(t, check{"refuses with a reason", refuses}, idle).formats)
	for _, c := range checks {
		if !shown[c.name] {
			t.Errorf("nothing shows that %q can find anything", c.name)
		}
	}
	for at, format := range assertions(t) {
		if !shown[format] {
			t.Errorf("%s: nothing shows that this can be found: %q", at, format)
		}
	}
}

// assertions are the words of all that the suite can find, by where they are in its source.
func assertions(t *testing.T) map[string]string {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found, at := map[string]string{}, token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(at, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if format, ok := assertion(n); ok {
				found[at.Position(n.Pos()).String()] = format
			}
			return true
		})
	}
	if len(found) < len(checks) {
		t.Fatalf("%d checks, and %d words of what they find", len(checks), len(found))
	}
	return found
}

// assertion is what a call of Errorf, Fatalf or Fatal says.
func assertion(n ast.Node) (format string, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Errorf", "Fatalf", "Fatal"}, method.Sel.Name) {
		return "", false
	}
	if of, ok := method.X.(*ast.Ident); ok && of.Name == "fmt" {
		return "", false
	}
	text, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	format, err := strconv.Unquote(text.Value)
	return format, err == nil
}
