package expression

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

const updateKind = "UpdateExpression"

// Update is an update expression.
type Update struct {
	actions []action
	tree    tree // of the actions' targets
}

// action writes to one place. Its section says how.
type action struct {
	section     tokenKind
	target      path
	left, right operand
	operator    tokenKind // of SET: + or -, or none for left alone
}

// ParseUpdate reads an update expression: sections SET, REMOVE, ADD and DELETE, each once at most.
// No two actions may write to one place, nor one to a part of what another writes.
func ParseUpdate(source string, a *Attributes) (*Update, error) {
	var p parser
	if err := p.start(updateKind, source, a); err != nil {
		return nil, err
	}
	actions := make([]action, 0, 4)
	var repeated string
	var seen [tokenDelete + 1]bool
	for {
		section := p.token.kind
		if section < tokenSet || section > tokenDelete {
			p.unexpected()
			break
		}
		if seen[section] && repeated == "" {
			repeated = sectionName(section)
		}
		seen[section] = true
		p.advance()
		for {
			actions = append(actions, p.action(section))
			if !p.accept(tokenComma) {
				break
			}
		}
		if p.token.kind == tokenEnd {
			break
		}
	}
	if err := p.finishEarly(); err != nil {
		return nil, err
	}
	if repeated != "" {
		return nil, p.invalid("The \"%s\" section can only be used once in an update expression;", repeated)
	}
	targets := make([]path, len(actions))
	for i := range actions {
		targets[i] = actions[i].target
	}
	// Faults of targets go before those of values, which the parser has found already.
	late := p.late
	p.late = nil
	if err := p.resolveAll(targets); err != nil {
		return nil, err
	}
	p.late = late
	if err := p.finishLate(); err != nil {
		return nil, err
	}
	return &Update{actions: actions, tree: newTree(targets)}, nil
}

func sectionName(section tokenKind) string {
	switch section {
	case tokenSet:
		return "SET"
	case tokenRemove:
		return "REMOVE"
	case tokenAdd:
		return "ADD"
	default:
		return "DELETE"
	}
}

func (p *parser) action(section tokenKind) action {
	// Of the faults in values DynamoDB finds that of the last action first.
	before := p.late
	p.late = nil
	a := action{section: section, target: p.path()}
	switch section {
	case tokenSet:
		p.expect(tokenEqual)
		a.left, a.operator, a.right = p.newValue()
	case tokenAdd, tokenDelete:
		a.left = operand{value: p.value()}
		p.checkSectionType(section, a.left.value)
	}
	if p.late == nil {
		p.late = before
	}
	return a
}

// newValue reads the right-hand side of SET. Parentheses may be around an operand or around all.
func (p *parser) newValue() (left operand, operator tokenKind, right operand) {
	switch {
	case p.token.kind == tokenOpen:
		g := p.openGroup()
		left, operator, right = p.newValue()
		if p.closeGroup(g) {
			p.redundant = true
		}
		if operator != tokenEnd {
			return left, operator, right
		}
	case p.token.kind == tokenName && p.next.kind == tokenOpen:
		left = operand{call: p.call(false)}
	default:
		left = p.operand()
	}
	operator = p.token.kind
	if operator != tokenPlus && operator != tokenMinus {
		return left, tokenEnd, operand{}
	}
	name := p.text(p.operator(left))
	right = p.operand()
	p.checkTypes(name, []operand{left, right}, "N")
	return left, operator, right
}

func (p *parser) checkSectionType(section tokenKind, v types.AttributeValue) {
	var name string
	switch v.(type) {
	case *types.AttributeValueMemberN:
		if section == tokenAdd {
			return
		}
		name = "NUMBER"
	case *types.AttributeValueMemberS:
		name = "STRING"
	case *types.AttributeValueMemberB:
		name = "BINARY"
	case *types.AttributeValueMemberBOOL:
		name = "BOOLEAN"
	case *types.AttributeValueMemberNULL:
		name = "NULL"
	case *types.AttributeValueMemberL:
		name = "LIST"
	case *types.AttributeValueMemberM:
		name = "MAP"
	default: // a set, or nothing, which is a fault that was noted
		return
	}
	p.failLate("Incorrect operand type for operator or function; operator: %[1]s, operand type: %[2]s, typeSet: ALLOWED_FOR_%[1]s_OPERAND", sectionName(section), name)
}

// Attributes are the names of the attributes that the update writes, in whole or in part, each
// once.
func (u *Update) Attributes() []string { return u.tree.names() }

// PartsOf are those of the attributes of which the update writes only a part: an element, or a
// member.
func (u *Update) PartsOf() []string {
	var names []string
	for _, b := range u.tree.branches {
		if b.leaf == noLeaf {
			names = append(names, b.element.name)
		}
	}
	return names
}

// Apply returns the item after the update, and leaves the one it was given alone. All actions see
// the item as it was, lists with their elements where they were. The item may be nil, or have just
// its key.
func (u *Update) Apply(item value.Item) (value.Item, error) {
	changes := make([]change, len(u.actions))
	for i := range u.actions {
		var err error
		if changes[i], err = u.actions[i].change(item); err != nil {
			return nil, err
		}
	}
	return u.tree.writeMap(item, changes), nil
}

// Select returns what the paths that the update writes lead to in an item, nested as in a
// projection: of the item before the update it is what UPDATED_OLD returns, of the item after it
// what UPDATED_NEW does.
//
// An element that was put behind the end of a list is not where its path leads, nor is an element
// that was removed gone from there if another one has moved up. DynamoDB takes no heed of that
// either.
func (u *Update) Select(item value.Item) value.Item { return u.tree.projectItem(item) }

func invalidPath() error {
	return apierror.Validation("The document path provided in the update expression is invalid for update")
}

func wrongOperand() error {
	return apierror.Validation("An operand in the update expression has an incorrect data type")
}

func missingAttribute() error {
	return apierror.Validation("The provided expression refers to an attribute that does not exist in the item")
}
