package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/pages"
)

// blockLimit bounds a block of commands: bringing up a cluster is one.
const blockLimit = 5 * time.Minute

// reader types the commands of pages. The comment above a block says what a reader knows from the
// text around it:
//
//	<!-- run: no, REASON -->    no test types it
//	<!-- run: stays -->         it runs on, in a terminal of its own
//	<!-- run: stays on HOST --> the same on another host
//	<!-- run: on HOST -->       it is typed on another host
//	<!-- run: joins -->         what it prints is typed on another host, once for each
//	<!-- run: until N WORD -->  typed again until it prints the word so often
//	<!-- run: save FILE -->     a manifest, saved by that name
//
// pages.Mark has the other comments. What a command printed is in the file printed. Beside what a
// shell knows, situation has what brings about a situation.
type reader struct {
	*testing.T
	lab *hosts.Lab
	// clone stands in for the clone of the repository in which the reader works.
	clone string
	// running are the servers and agents, by the numbers of their hosts.
	running map[int]*hosts.Process
}

// readerOn is a reader at hosts with servers and agents.
func readerOn(b *bed) *reader {
	b.Helper()
	r := newReader(b.T, b.Lab)
	for n := 1; n <= len(b.Lab.Hosts()); n++ {
		if p := b.Server(n); p != nil {
			r.running[n] = p
		}
	}
	return r
}

// see is what a reader sees on the screen, and types:
//
//	see action                   the newest action
//	see plan, see code           the plan, or the code, that the last command printed
//	see disk 1 of h4 by id       its identity, or its path
//	see osd on h1                the Daemon of the host; see osd: the first of all
const see = `#!/bin/sh
daemons='{range .items[*]}{.spec.host} {.metadata.name}{"\n"}{end}'
case "$1" in
action) kubectl get actions -A --sort-by=.metadata.creationTimestamp -o name | tail -1 | cut -d/ -f2 ;;
plan) grep -o 'plan-[0-9a-z]*' printed | tail -1 ;;
code) grep -o -e '--approve [0-9a-f]*' printed | tail -1 | cut -d' ' -f2 ;;
disk) kubectl get host "$4" -o jsonpath='{range .status.devices[*]}{.id} {.path}{"\n"}{end}' |
	awk -v n="$2" -v by="$6" '$1 ~ "/disk" n "(\\.[0-9]+)?$" {print by == "id" ? $1 : $2}' ;;
*) kubectl get daemons -o jsonpath="$daemons" | grep "^$3.*ceph-$1" | head -1 | cut -d' ' -f2 ;;
esac
`

// newReader prepares hosts for a reader. Three things are stand-ins: sudo, which would take the
// lab's variables away, for a reader who is root; /etc/ceph and /mnt, which all hosts would share,
// are empty on each; and an editor that writes the lab's names and devices into an example, and
// that the machine's disk may be rather full.
func newReader(t *testing.T, lab *hosts.Lab) *reader {
	t.Helper()
	r := &reader{T: t, lab: lab, clone: filepath.Join(lab.Dir, "clone"), running: map[int]*hosts.Process{}}
	bin := filepath.Join(r.clone, "bin")
	edit := "#!/bin/sh\nexec sed -i" +
		` -e 's|^  ceph:$|&\n    config: {mon: {mon_data_avail_warn: 5, mon_data_avail_crit: 2}}|'`
	for i, h := range lab.Hosts() {
		edit += strings.NewReplacer("NODE", "node"+string(rune('1'+i)), "HOST", h.Name, "DISK", h.Disk(0).ID()).Replace(
			` -e '/hostname: NODE$/,/sdb/s|/dev/sdb|DISK|' -e 's/\bNODE\b/HOST/'`)
	}
	scripts := map[string]string{"sudo": "#!/bin/sh\nexec \"$@\"\n", "edit": edit + " \"$1\"\n", "see": see}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(r.clone, "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"holdfast": binary, "kubectl": kubectl} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range lab.Hosts() {
		for _, dir := range []string{"/etc/ceph", "/mnt"} {
			h.Run(t, t.Context(), "mount", "-t", "tmpfs", "none", dir)
		}
	}
	return r
}

// readAll reads the pages of this test.
func (r *reader) readAll() {
	r.Helper()
	for _, page := range pages.Typed[r.Name()] {
		r.read(page)
	}
}

// read types the commands of a page.
func (r *reader) read(page string) {
	r.Helper()
	blocks, _, err := pages.Read("../../docs/" + page)
	if err != nil {
		r.Fatal(err)
	}
	for _, block := range blocks {
		r.before(block)
		verb, rest, _ := strings.Cut(block.Note, " ")
		switch {
		case verb == "save":
			r.save(rest, block)
		case verb == "no," || len(block.Commands()) == 0:
		case verb == "stays":
			host := r.numberOf(cmp.Or(strings.TrimPrefix(rest, "on "), r.lab.Host(1).Name))
			r.stays(host, r.filled(block, "exec "+block.Commands()[0].Text))
		case verb == "joins":
			r.join(block)
		case verb == "until":
			r.until(block, rest)
		case verb == "on":
			r.typed(r.numberOf(rest), block)
		case verb == "":
			r.typed(1, block)
		default:
			r.Fatalf("%s: there is no note %q", block.Where(), block.Note)
		}
	}
}

func (r *reader) save(name string, block pages.Block) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.clone, name), []byte(block.Text()), 0o644); err != nil {
		r.Fatal(err)
	}
}

func (r *reader) command(ctx context.Context, host int, script string) *hosts.Cmd {
	cmd := r.lab.Host(host).Command(ctx, "bash", "-e", "-c", "cd "+r.clone+"\n"+script)
	cmd.Env = append(cmd.Env, "PATH="+r.clone+"/bin:"+os.Getenv("PATH"), "EDITOR=edit",
		"KUBECONFIG=/var/lib/holdfast/admin.kubeconfig")
	return cmd
}

// run types something on the first host, which has to succeed.
func (r *reader) run(block pages.Block, script string) string { return r.runOn(1, block, script) }

func (r *reader) runOn(host int, block pages.Block, script string) string {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), blockLimit)
	defer cancel()
	start := time.Now()
	out, err := r.command(ctx, host, script).CombinedOutput()
	r.Logf("%s: %.1f s\n$ %s\n%s", block.Where(), time.Since(start).Seconds(), script, out)
	if err != nil {
		r.Fatalf("%s: %v\n$ %s\n%s", block.Where(), err, script, out)
	}
	if err := os.WriteFile(filepath.Join(r.clone, "printed"), out, 0o600); err != nil {
		r.Fatal(err)
	}
	return string(out)
}

// typed types the commands of a block: those between two words with values as one script, so that
// they share variables and directory. Where the page shows what a command prints, the heads of
// tables are compared.
func (r *reader) typed(host int, block pages.Block) {
	r.Helper()
	var script []string
	flush := func() (out string) {
		if len(script) > 0 {
			out = r.runOn(host, block, strings.Join(script, "\n"))
		}
		script = nil
		return out
	}
	for _, c := range block.Commands() {
		if c.Reason != "" {
			continue
		}
		if r.serviced(host, c.Head(), func() { flush() }) {
			continue
		}
		if len(r.words(block, c.Text)) > 0 {
			flush()
		}
		c.Text = r.filled(block, c.Text)
		script = append(script, wrapped(c))
		if len(c.Output) > 0 {
			r.sameTable(block, c, flush())
		}
	}
	flush()
}

// wrapped is what is typed for a command that does not simply succeed.
func wrapped(c pages.Command) string {
	switch {
	case c.Interrupted:
		return "timeout --signal INT 5 " + c.Head() + " || [ $? = 124 ] || [ $? = 130 ]"
	case c.Exit != 0:
		text := strings.Replace(c.Text, c.Head(), c.Head()+" || code=$?", 1)
		return fmt.Sprintf("code=0; %s\n[ $code = %d ]", text, c.Exit)
	}
	return c.Text
}

func (r *reader) sameTable(block pages.Block, c pages.Command, out string) {
	r.Helper()
	first, _, _ := strings.Cut(out, "\n")
	for _, line := range c.Output {
		if heads.MatchString(line) && !slices.Equal(strings.Fields(first), strings.Fields(line)) {
			r.Errorf("%s: the page has the table\n%s\nand the program\n%s", block.Where(), line, out)
		}
	}
}

// words are the placeholders of the page that a text has, each with its last value.
func (r *reader) words(block pages.Block, text string) (all [][2]string) {
	for _, mark := range slices.Backward(block.Texts("with")) {
		word, value, _ := strings.Cut(mark, "=")
		known := slices.ContainsFunc(all, func(w [2]string) bool { return w[0] == word })
		if !known && placeholder(word).MatchString(text) {
			all = append(all, [2]string{word, value})
		}
	}
	return all
}

// placeholder finds a word of a page that stands for something else.
func placeholder(word string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^\w-])(` + regexp.QuoteMeta(word) + `)($|[^\w-])`)
}

// filled is a text with values in the place of its placeholders.
func (r *reader) filled(block pages.Block, text string) string {
	r.Helper()
	for _, w := range r.words(block, text) {
		value := strings.TrimSpace(r.quiet(block, `printf %s "`+w[1]+`"`))
		if value == "" {
			r.Fatalf("%s: %s stands for nothing", block.Where(), w[0])
		}
		if strings.Contains(value, "\n") {
			r.Fatalf("%s: %s stands for several lines:\n%s", block.Where(), w[0], value)
		}
		text = placeholder(w[0]).ReplaceAllString(text, "${1}"+strings.ReplaceAll(value, "$", "$$")+"${3}")
	}
	return text
}

// quiet is run without what it prints being that of the reader's last command.
func (r *reader) quiet(block pages.Block, script string) string {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), blockLimit)
	defer cancel()
	out, err := r.command(ctx, 1, script).Output()
	if err != nil {
		r.Fatalf("%s: %v\n$ %s\n%s", block.Where(), err, script, out)
	}
	return string(out)
}

// heads is the head of a table.
var heads = regexp.MustCompile(`^[A-Z][A-Z ]+$`)

// stays starts what runs until the test ends, and waits until the server or agent that it is has
// reported its host.
func (r *reader) stays(host int, script string) {
	r.Helper()
	r.running[host] = r.lab.Host(host).Launch(r, "holdfast", r.command(context.Background(), host, script))
	asked := 1
	if strings.Contains(script, "holdfast server") {
		asked = host
	}
	home.Await(r, "what runs on "+r.lab.Host(host).Name, func() error {
		_, err := r.lab.Host(asked).Try(r.Context(), binary, "get", "host", r.lab.Host(host).Name)
		return err
	})
}

// join types a block for each other host, and there what it prints.
func (r *reader) join(block pages.Block) {
	r.Helper()
	for number := 2; number <= len(r.lab.Hosts()); number++ {
		out := r.run(block, block.Text())
		_, command, found := strings.Cut(out, "holdfast server --join")
		if !found {
			r.Fatalf("%s: it prints no command:\n%s", block.Where(), out)
		}
		r.stays(number, "exec holdfast server --join"+command)
	}
}

// until types a block until it prints a word so often: "3 Connected".
func (r *reader) until(block pages.Block, what string) {
	r.Helper()
	count, word, _ := strings.Cut(what, " ")
	home.Await(r, block.Where()+" to print "+what, func() error {
		if out := r.run(block, block.Text()); strconv.Itoa(strings.Count(out, word)) != count {
			return fmt.Errorf("it prints\n%s", out)
		}
		return nil
	})
}
