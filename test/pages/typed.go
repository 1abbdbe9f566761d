package pages

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Typed are the pages, below docs, that the end-to-end tests type, by the name of the test, in the
// order in which it does so: each test is one cluster, and each page finds it as the page before
// left it.
var Typed = map[string][]string{
	"TestTutorial": {"tutorial.md"},
	// The archive of pools.md has no copy to spare, so that no OSD can stop from there on.
	"TestHowTo": {
		"how-to/plans.md", "how-to/keep-ceph.md", "how-to/actions.md", "how-to/trouble.md",
		"how-to/maintenance.md", "how-to/access.md", "how-to/kubectl.md", "how-to/pools.md", "how-to/filesystems.md",
		"how-to/object-stores.md", "how-to/recover-mons.md",
	},
	"TestHowTo_hosts":        {"how-to/devices.md", "how-to/hosts.md", "how-to/uninstall.md"},
	"TestHowTo_controlPlane": {"how-to/upgrade.md", "how-to/certificates.md", "how-to/control-plane.md"},
	"TestHowTo_others":       {"how-to/torus.md", "how-to/glusterfs.md"},
}

// Account is what a page's commands come to.
type Account struct {
	// Page is its file below docs, Test the test that types it.
	Page, Test string
	Commands   []Command
	// InProse is the number of commands of Holdfast between the words of the page.
	InProse int
}

// Accounts are those of the tutorial and of all how-to pages below root. The problems name each
// command that no test types and that has no reason.
func Accounts(root string) (all []Account, problems []string, err error) {
	docs := filepath.Join(root, "docs")
	files, err := filepath.Glob(filepath.Join(docs, "how-to", "*.md"))
	if err != nil {
		return nil, nil, fmt.Errorf("while listing the pages: %w", err)
	}
	for _, file := range append([]string{filepath.Join(docs, "tutorial.md")}, files...) {
		page, err := filepath.Rel(docs, file)
		if err != nil {
			return nil, nil, fmt.Errorf("while naming a page: %w", err)
		}
		blocks, spans, err := Read(file)
		if err != nil {
			return nil, nil, err
		}
		a := Account{Page: page, Test: typedBy(page)}
		problems = append(problems, a.take(blocks)...)
		for _, s := range spans {
			if strings.HasPrefix(s.Text, "holdfast ") {
				a.InProse++
			}
		}
		all = append(all, a)
	}
	return all, problems, nil
}

// typedBy is the test that types a page, or empty.
func typedBy(page string) string {
	for test, list := range Typed {
		if slices.Contains(list, page) {
			return test
		}
	}
	return ""
}

// take counts the commands of blocks, and says what is wrong with them.
func (a *Account) take(blocks []Block) (problems []string) {
	for _, b := range blocks {
		for _, m := range b.Idle() {
			problems = append(problems, fmt.Sprintf("%s: no command fits <!-- %s: %s -->", b.Where(), m.Kind, m.Text))
		}
		if strings.HasPrefix(b.Note, "save ") {
			continue
		}
		for _, c := range b.Commands() {
			if a.Test == "" && c.Reason == "" {
				problems = append(problems,
					fmt.Sprintf("%s:%d: no test types %q, and no reason is given", b.File, c.Line, c.Head()))
			}
			a.Commands = append(a.Commands, c)
		}
	}
	return problems
}

// Executed is the number of commands that the page's test types.
func (a Account) Executed() (n int) {
	for _, c := range a.Commands {
		if a.Test != "" && c.Reason == "" {
			n++
		}
	}
	return n
}
