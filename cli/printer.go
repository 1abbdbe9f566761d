package cli

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/screen"
	"github.com/holdfast-storage/holdfast/cli/why"
)

// printer shows progress: a picture on a terminal, a line for each change elsewhere, or JSON.
type printer struct {
	out io.Writer
	// screen is the terminal itself that a picture is drawn on; nil elsewhere.
	screen *screen.Terminal
	// json is set where objects are written; yaml, too, where they are written as YAML.
	json, yaml bool
	// several is set where several actions are told of, each with its name.
	several bool
	start   time.Time
	// told is what was last said of each object, so that plain lines say only what is new.
	told map[string]string

	// mu guards what is told of several at one time.
	mu sync.Mutex
	// pictures are what is shown of each cluster and action, in the order in which they were first shown.
	pictures []clusterPicture
}

func newPrinter(out io.Writer, output string) *printer {
	p := &printer{out: out, yaml: output == "yaml", start: time.Now(), told: map[string]string{}}
	p.json = p.yaml || output == "json"
	if !p.json {
		p.screen = screen.Of(out)
	}
	return p
}

// applied says what applying an object did.
func (p *printer) applied(o object, verb string) {
	if p.json {
		p.emit(map[string]any{"object": o.String(), "namespace": o.GetNamespace(), "result": verb})
		return
	}
	fmt.Fprintf(p.out, "%s %s\n", o, verb)
}

// clusterPicture is what a terminal shows of one cluster, or one action.
type clusterPicture struct {
	name string
	rows []string
}

// show shows a snapshot. It may be called for several clusters at one time.
func (p *printer) show(name string, s snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.json:
		p.showJSON(name, s)
	case p.screen != nil:
		p.screen.Draw(p.with(clusterPicture{name, picture(name, s, time.Since(p.start))}))
	default:
		p.showChanges(name, s)
	}
}

// with puts the picture of a cluster in the place of the one before, and returns the rows of all.
func (p *printer) with(fresh clusterPicture) []string {
	i := slices.IndexFunc(p.pictures, func(have clusterPicture) bool { return have.name == fresh.name })
	if i < 0 {
		p.pictures = append(p.pictures, fresh)
	} else {
		p.pictures[i] = fresh
	}
	var rows []string
	for _, x := range p.pictures {
		rows = append(rows, x.rows...)
	}
	return rows
}

func (p *printer) showJSON(name string, s snapshot) {
	headline, lines, actions := s.headline(), s.lines(), s.actionsText()
	said := map[string]any{"cluster": name, "status": headline, "objects": screen.List(lines)}
	if actions != "" {
		said["actions"] = actions
	}
	screen.Add(said, s.Status, s.figures)
	text := screen.WithoutDurations(fmt.Sprint(headline, lines, actions)) + screen.Timeless(said)
	if p.told[name] != text {
		p.told[name], said["seconds"] = text, p.seconds()
		p.emit(said)
	}
}

// notes tells of what was not asked for and is wrong all the same.
func (p *printer) notes(cluster string, refusals []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case len(refusals) == 0:
	case p.json:
		p.emit(map[string]any{"cluster": cluster, "refused": refusals})
	default:
		fmt.Fprintf(p.out, "Not applied by you, and refused in %s:\n", cluster)
		for _, text := range refusals {
			fmt.Fprintf(p.out, "  %s\n", printable(text))
		}
	}
}

func (p *printer) seconds() float64 { return float64(time.Since(p.start).Milliseconds()) / 1000 }

func (p *printer) emit(v any) { fmt.Fprint(p.out, screen.Encode(v, p.yaml)) }

func (p *printer) showChanges(name string, s snapshot) {
	for _, l := range s.lines() {
		p.tellNew(name+"/"+l.Object, l.plain())
	}
	if actions := s.actionsText(); actions != "" {
		p.tellNew(name+"/actions", actions)
	} else {
		delete(p.told, name+"/actions") // the same may come again
	}
	p.tellNew(name, fmt.Sprintf("%s: %s", name, s.headline()))
}

// tellNew tells of what is not only older than when it was told.
func (p *printer) tellNew(key, text string) {
	if same := screen.WithoutDurations(text); p.told[key] != same {
		p.told[key] = same
		p.say(text)
	}
}

func (p *printer) tell(key, text string) {
	if p.told[key] != text {
		p.told[key] = text
		p.say(text)
	}
}

func (p *printer) say(text string) {
	fmt.Fprintf(p.out, "%6.1fs  %s\n", p.seconds(), screen.Shorten(printable(text)))
}

func (l line) plain() string {
	text := l.Object
	if l.Host != "" {
		text += " on " + l.Host
	}
	text += ": " + l.State
	if l.Detail != "" {
		text += ", " + l.Detail
	}
	return text
}

// picture is what a terminal shows of a cluster, a row an element.
func picture(name string, s snapshot, elapsed time.Duration) []string {
	rows := []string{fmt.Sprintf("%s  %s  (%.0fs)", name, s.headline(), elapsed.Seconds())}
	if counts := s.counts(); counts != "" {
		rows = append(rows, "  "+counts)
	}
	if s.Status != nil {
		for _, row := range screen.Numbers(&s.Status.Status, s.figures) {
			rows = append(rows, "  "+row)
		}
	}
	if actions := s.actionsText(); actions != "" {
		rows = append(rows, "  "+actions)
	}
	var lines []screen.Row
	for _, l := range s.lines() {
		lines = append(lines, screen.Row{Mark: l.mark(), Object: l.Object, Host: l.Host, State: l.State, Detail: l.Detail})
	}
	rows = append(rows, screen.Rows(lines, len(s.Daemons) > screen.Many)...)
	for _, d := range s.decisions() {
		rows = append(rows, "  - "+d)
	}
	return rows
}

func (l line) mark() string {
	if mark := why.Mark(l.Service); mark != "" {
		return mark
	}
	switch l.State {
	case "Running", string(api.ResourceOnline):
		return "✓"
	case "Failed", "BackOff", string(api.ResourceOffline):
		return "✗"
	case unheard:
		return "?"
	}
	return "…"
}

// printable makes one line of a text: a space stands in the place of each control character.
func printable(text string) string { return screen.Plain(text) }
