package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/test/pages"
	"github.com/holdfast-storage/holdfast/test/tier"
	"github.com/holdfast-storage/holdfast/test/turn"
)

// The tiers that a test can be in: core runs in 'make test' and in 'make test-full', full in the
// latter alone.
type tierName int

const (
	core tierName = iota
	full
)

// tests are all tests of this package, each with its tier, and about how many seconds it takes
// alone. The longest begins first.
var tests = map[string]struct {
	tier    tierName
	seconds int
}{
	// The core shows every capability once.
	"TestAdopt":          {core, 80},
	"TestAgentHost":      {core, 40},
	"TestAgentKilled":    {core, 30},
	"TestBringUp":        {core, 60},
	"TestDaemonStop":     {core, 60},
	"TestDemo":           {core, 40},
	"TestDisks":          {core, 90},
	"TestDriveGroup":     {core, 90},
	"TestFilesystem":     {core, 140},
	"TestGluster":        {core, 175},
	"TestGlusterDrain":   {core, 174},
	"TestGlusterNFS":     {core, 100},
	"TestGrow":           {core, 60},
	"TestHostCommands":   {core, 60},
	"TestLeaderKilled":   {core, 50},
	"TestMaintenance":    {core, 90},
	"TestObjectStore":    {core, 165},
	"TestOrch":           {core, 60},
	"TestOrchWrites":     {core, 90},
	"TestPools":          {core, 90},
	"TestQuorum":         {core, 105},
	"TestServer_refuses": {core, 20},
	"TestSingleHost":     {core, 60},
	"TestTorus":          {core, 250},
	"TestTwins":          {core, 55},

	// Rare and long scenarios, virtual machines, and failures on top of failures.
	"TestFilesystemServes":   {full, 120},
	"TestFilesystemKept":     {full, 120},
	"TestLaptop":             {full, 50},
	"TestLogs":               {full, 150},
	"TestAdoptLVM":           {full, 350},
	"TestCephByHand":         {full, 120},
	"TestHostAddress":        {full, 100},
	"TestHungMgr":            {full, 130},
	"TestIdleDaemons":        {full, 400},
	"TestLastWords":          {full, 120},
	"TestSupportBundle":      {full, 70},
	"TestServerAddress":      {full, 60},
	"TestHostAddress_bridge": {full, 30},
	"TestStatusFigures":      {full, 110},

	"TestServerAddress_alone": {full, 60},
	"TestChaos":               {full, 190},
	"TestDamagedServer":       {full, 90},
	"TestEncryptedOSD":        {full, 120},
	"TestEmptyPlan":           {full, 150},
	"TestEncryption":          {full, 60},
	"TestFailedDisk":          {full, 90},
	"TestFullDisk":            {full, 90},
	"TestGlusterByHand":       {full, 240},
	"TestGlusterRepair":       {full, 218},
	"TestGlusterSituations":   {full, 260},
	"TestGlusterSplitBrain":   {full, 100},
	"TestGlusterUpgrade":      {full, 120},
	"TestHostActions":         {full, 333},
	"TestHowTo":               {full, 220},
	"TestHowTo_controlPlane":  {full, 60},
	"TestHowTo_hosts":         {full, 250},
	"TestHowTo_others":        {full, 150},
	"TestHungDisk":            {full, 100},
	"TestHungMons":            {full, 144},
	"TestKeeping":             {full, 100},
	"TestKernelClient":        {full, 90},
	"TestLinear":              {full, 60},
	"TestLostMon":             {full, 90},
	"TestMirror":              {full, 120},
	"TestNoWrites":            {full, 150},
	"TestOrchKilled":          {full, 310},
	"TestRecoverMons":         {full, 90},
	"TestRestartEverything":   {full, 100},
	"TestSideBySide":          {full, 120},
	"TestTorusGivenEtcd":      {full, 60},
	"TestSilentAgents":        {full, 260},
	"TestSilentServers":       {full, 160},
	"TestTutorial":            {full, 120},
}

// alone are the tests that emulate a machine, whose processor takes all that one of this machine's
// gives.
var alone = []string{"TestAdoptLVM", "TestEncryptedOSD", "TestEncryption", "TestKernelClient"}

// memory is what a test takes at most, in bytes: four hosts with real Ceph, or a virtual machine
// beside three.
const memory = 3 << 30

var queue turn.Queue

// begin stands at the head of each test: it skips one that is not in the tier that runs, and waits
// until the machine has room.
func begin(t *testing.T) {
	t.Helper()
	test, ok := tests[t.Name()]
	if !ok {
		t.Fatalf("%s is in no tier: add it to the list in tiers_test.go", t.Name())
	}
	if test.tier == full {
		tier.Full(t)
	}
	t.Parallel()
	queue.Begin(t, turn.Need{
		Memory: memory, Length: time.Duration(test.seconds) * time.Second, Alone: slices.Contains(alone, t.Name()),
	})
}

// TestTiers checks that the list has each test of this package, and that each begins with its tier.
func TestTiers(t *testing.T) {
	left := map[string]bool{}
	for name := range tests {
		left[name] = true
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" || f.Name.Name == "TestTiers" {
				continue
			}
			if !left[f.Name.Name] {
				t.Errorf("%s is in no tier: add it to the list in tiers_test.go", f.Name.Name)
			}
			if !beginsWithTier(f) {
				t.Errorf("%s does not call begin(t) first", f.Name.Name)
			}
			delete(left, f.Name.Name)
		}
	}
	for _, name := range alone {
		if _, ok := tests[name]; !ok {
			t.Errorf("alone has %s, which is no test", name)
		}
	}
	for name := range pages.Typed {
		if _, ok := tests[name]; !ok {
			t.Errorf("pages.Typed has %s, which is no test", name)
		}
	}
	for name := range left {
		t.Errorf("the list has %s, which is no test", name)
	}
}

func beginsWithTier(f *ast.FuncDecl) bool {
	first, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := first.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "begin"
}
