package e2e

import (
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

// TestTutorial does what the tutorial says, word by word, from three machines without anything to a
// cluster that is gone again.
func TestTutorial(t *testing.T) {
	begin(t)
	r := newReader(t, hosts.New(t, hosts.Options{Count: 3, Disks: 1}))
	r.read("tutorial.md", 10)
}

// TestHowTo does what pages on resources of Ceph say, word by word, on a cluster that serves.
func TestHowTo(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	b.mustApply(home.SpecFor(b.Lab, 3, 2, 1).YAML())
	r := newReader(t, b.Lab)
	r.read("how-to/pools.md", 4)
	r.read("how-to/filesystems.md", 5)
	r.read("how-to/object-stores.md", 4)
	r.read("how-to/maintenance.md", 4)
	r.read("how-to/access.md", 1)
}

// blockLimit bounds a block of commands: bringing up a cluster is one.
const blockLimit = 5 * time.Minute

// reader types the commands of pages. The comment above a block says what a reader knows from the
// text around it:
//
//	<!-- run: no, REASON -->    not on the hosts of a lab
//	<!-- run: stays -->         it runs on, in a terminal of its own
//	<!-- run: joins -->         what it prints is typed on another host, once for each
//	<!-- run: until N WORD -->  typed again until it prints the word so often
//	<!-- run: save FILE -->     a manifest, saved by that name
type reader struct {
	*testing.T
	lab *hosts.Lab
	// clone stands in for the clone of the repository in which the reader works.
	clone string
}

// newReader prepares hosts for a reader. Three things are stand-ins: sudo, which would take the
// lab's variables away, for a reader who is root; /etc/ceph and /mnt, which all hosts would share,
// are empty on each; and an editor that writes the lab's names and devices into an example, and
// that the machine's disk may be rather full.
func newReader(t *testing.T, lab *hosts.Lab) *reader {
	t.Helper()
	r := &reader{T: t, lab: lab, clone: filepath.Join(lab.Dir, "clone")}
	bin := filepath.Join(r.clone, "bin")
	edit := "#!/bin/sh\nexec sed -i" +
		` -e 's|^  ceph:$|&\n    config: {mon: {mon_data_avail_warn: 5, mon_data_avail_crit: 2}}|'`
	for i, h := range lab.Hosts() {
		edit += strings.NewReplacer("NODE", "node"+string(rune('1'+i)), "HOST", h.Name, "DISK", h.Disk(0).ID()).Replace(
			` -e '/hostname: NODE$/,/sdb/s|/dev/sdb|DISK|' -e 's/\bNODE\b/HOST/'`)
	}
	scripts := map[string]string{"sudo": "#!/bin/sh\nexec \"$@\"\n", "edit": edit + " \"$1\"\n"}
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

// read types the commands of a page, which has at least so many blocks of them.
func (r *reader) read(page string, atLeast int) {
	r.Helper()
	blocks, _, err := pages.Read("../../docs/" + page)
	if err != nil {
		r.Fatal(err)
	}
	done := 0
	for _, block := range blocks {
		verb, rest, _ := strings.Cut(block.Note, " ")
		switch {
		case verb == "save":
			r.save(rest, block)
			continue
		case verb == "no," || len(block.Manifests()) > 0 || block.Language == "yaml":
			continue
		case verb == "stays":
			r.stays(1, strings.Join(r.script(block), "\n"))
		case verb == "joins":
			r.join(block)
		case verb == "until":
			r.until(block, rest)
		case verb == "":
			r.typed(block)
		default:
			r.Fatalf("%s: there is no note %q", block.Where(), block.Note)
		}
		done++
	}
	if done < atLeast {
		r.Errorf("%s: %d blocks were run, and not %d", page, done, atLeast)
	}
}

func (r *reader) save(name string, block pages.Block) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.clone, name), []byte(block.Text()), 0o644); err != nil {
		r.Fatal(err)
	}
}

// script are the lines that are typed: all, or those with a prompt.
func (r *reader) script(block pages.Block) (all []string) {
	for _, line := range block.Lines {
		if text, prompted := strings.CutPrefix(line, "$ "); prompted {
			all = append(all, text)
		}
	}
	if len(all) > 0 {
		return all
	}
	return block.Lines
}

func (r *reader) command(ctx context.Context, host int, script string) *hosts.Cmd {
	cmd := r.lab.Host(host).Command(ctx, "bash", "-e", "-c", "cd "+r.clone+"\n"+script)
	cmd.Env = append(cmd.Env, "PATH="+r.clone+"/bin:"+os.Getenv("PATH"), "EDITOR=edit",
		"KUBECONFIG=/var/lib/holdfast/admin.kubeconfig")
	return cmd
}

// run types something on the first host, which has to succeed.
func (r *reader) run(block pages.Block, script string) string {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), blockLimit)
	defer cancel()
	start := time.Now()
	out, err := r.command(ctx, 1, script).CombinedOutput()
	r.Logf("%s: %.1f s\n$ %s\n%s", block.Where(), time.Since(start).Seconds(), script, out)
	if err != nil {
		r.Fatalf("%s: %v\n$ %s\n%s", block.Where(), err, script, out)
	}
	return string(out)
}

// typed types the commands of a block. Where the page shows what a command prints, the heads of
// tables are compared.
func (r *reader) typed(block pages.Block) {
	r.Helper()
	if !strings.HasPrefix(block.Lines[0], "$ ") {
		r.run(block, block.Text())
		return
	}
	out := ""
	for _, line := range block.Lines {
		if text, is := strings.CutPrefix(line, "$ "); is {
			out = r.run(block, text)
		} else if heads.MatchString(line) {
			first, _, _ := strings.Cut(out, "\n")
			if !slices.Equal(strings.Fields(first), strings.Fields(line)) {
				r.Errorf("%s: the page has the table\n%s\nand the program\n%s", block.Where(), line, out)
			}
		}
	}
}

// heads is the head of a table.
var heads = regexp.MustCompile(`^[A-Z][A-Z ]+$`)

// stays starts what runs until the test ends, and waits until the server that it is answers.
func (r *reader) stays(host int, script string) {
	r.Helper()
	r.lab.Host(host).Launch(r, "holdfast", r.command(context.Background(), host, script))
	home.Await(r, "the server on "+r.lab.Host(host).Name, func() error {
		_, err := r.lab.Host(host).Try(r.Context(), binary, "get", "host", r.lab.Host(host).Name)
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
