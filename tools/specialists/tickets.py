"""Messages to customer service as a ticket in JSON, in Italian and English."""
from rows import Task, generator

CATEGORIES = ['delivery', 'billing', 'fault', 'return', 'account', 'information']
URGENCIES = ['low', 'normal', 'high']
SCHEMA = {'type': 'object', 'properties': {
    'category': {'type': 'string', 'enum': CATEGORIES}, 'urgency': {'type': 'string', 'enum': URGENCIES},
    'order': {'type': 'string', 'pattern': '^[A-Z0-9-]{0,10}$'}, 'product': {'type': 'string', 'maxLength': 24}},
    'required': ['category', 'urgency', 'order', 'product'], 'additionalProperties': False}

_PRODUCTS = {
    'it': 'lavatrice;stampante;tostapane;zaino;telefono;lampada;sedia;forno;tastiera;cuffie;monitor;bicicletta;frullatore;'
          'divano;router;aspirapolvere;orologio;materasso;tenda;fotocamera'.split(';'),
    'en': 'washing machine;printer;toaster;backpack;phone;lamp;chair;oven;keyboard;headphones;monitor;bicycle;blender;sofa;'
          'router;vacuum cleaner;watch;mattress;tent;camera'.split(';')}

# {p} the product, {o} the order. Every fourth sentence of a cell stands on the held-out side alone.
_SENTENCES = {
    ('it', 'delivery'): ['Il pacco con {p} non è ancora arrivato, ordine {o}.', 'Ordine {o}: dov\'è la spedizione di {p}?',
                         'Il corriere ha lasciato {p} al vicino, ordine {o}.', 'Aspetto {p} da due settimane (ordine {o}).',
                         'Quando mi consegnate {p}? Ordine {o}.', 'La consegna di {p} era prevista ieri, ordine {o}.',
                         'Ho ordinato {p} con il numero {o} e non arriva.', 'Nessuna notizia del corriere per {p}, ordine {o}.'],
    ('it', 'billing'): ['Mi avete addebitato due volte {p}, ordine {o}.', 'La fattura {o} per {p} ha un importo sbagliato.',
                        'Non ho ricevuto la fattura di {p}, ordine {o}.', 'Il pagamento di {p} è stato rifiutato, ordine {o}.',
                        'Nella fattura {o} manca la partita IVA, prodotto {p}.', 'Ordine {o}: prezzo di {p} diverso dal preventivo.',
                        'Vorrei la ricevuta per {p}, ordine {o}.', 'L\'addebito per {p} non corrisponde all\'ordine {o}.'],
    ('it', 'fault'): ['Con {p} non funziona più niente, ordine {o}.', 'Ho {p} che fa un rumore strano, ordine {o}.',
                      'Ordine {o}: {p} non si accende.', 'Appena aperto {p} era già rotto, ordine {o}.',
                      'Dopo tre giorni {p} si è guastato (ordine {o}).', 'Esce fumo da {p}, ordine {o}.',
                      'Da ieri {p} si blocca di continuo, ordine {o}.', 'Problema tecnico con {p}, ordine {o}: schermo nero.'],
    ('it', 'return'): ['Voglio restituire {p}, ordine {o}.', 'Come faccio il reso di {p}? Ordine {o}.',
                       'Chiedo il rimborso di {p}, ordine {o}.', 'Ordine {o}: {p} è del colore sbagliato, lo rimando.',
                       'Vorrei cambiare {p} con un altro modello, ordine {o}.', 'Rimando indietro {p}, ordine {o}, mandatemi l\'etichetta.',
                       'Ho cambiato idea su {p}, ordine {o}: annullate e rimborsate.', 'Posso rendere {p} in negozio? Ordine {o}.'],
    ('it', 'account'): ['Non riesco ad accedere al mio profilo.', 'Ho dimenticato la password del sito.', 'Vorrei cambiare la mia e-mail.',
                        'Cancellate il mio account, per favore.', 'Il codice di verifica non arriva.', 'Il mio profilo risulta bloccato.',
                        'Devo aggiornare l\'indirizzo nel mio account.', 'Come attivo l\'accesso in due passaggi?'],
    ('it', 'information'): ['Avete ancora {p} in magazzino?', 'Quanto costa {p} con la garanzia lunga?', '{p}: si può avere in nero?',
                            'Che dimensioni ha {p}?', 'Fate sconti su {p} per le scuole?', 'Quali sono gli orari del negozio?',
                            'Spedite {p} anche in Svizzera?', 'Quanto dura la garanzia di {p}?'],
    ('en', 'delivery'): ['The parcel with the {p} has not come yet, order {o}.', 'Order {o}: where is my {p}?',
                         'The courier left the {p} with a neighbour, order {o}.', 'I have waited two weeks for the {p} (order {o}).',
                         'When will you deliver the {p}? Order {o}.', 'The {p} was due yesterday, order {o}.',
                         'I ordered a {p} under {o} and it never came.', 'No word from the courier about the {p}, order {o}.'],
    ('en', 'billing'): ['You charged me twice for the {p}, order {o}.', 'Invoice {o} for the {p} shows a wrong amount.',
                        'I never got the invoice for the {p}, order {o}.', 'My payment for the {p} was refused, order {o}.',
                        'Invoice {o} lacks my VAT number, product {p}.', 'Order {o}: the price of the {p} is not what you quoted.',
                        'I need a receipt for the {p}, order {o}.', 'The charge for the {p} does not match order {o}.'],
    ('en', 'fault'): ['Nothing works on the {p} any more, order {o}.', 'The {p} makes a strange noise, order {o}.',
                      'Order {o}: the {p} does not switch on.', 'The {p} was broken when I opened the box, order {o}.',
                      'After three days the {p} failed (order {o}).', 'Smoke comes out of the {p}, order {o}.',
                      'The {p} keeps freezing since yesterday, order {o}.', 'Technical problem with the {p}, order {o}: black screen.'],
    ('en', 'return'): ['I want to return the {p}, order {o}.', 'How do I send back the {p}? Order {o}.', 'I ask for a refund of the {p}, order {o}.',
                       'Order {o}: the {p} has the wrong colour, I am sending it back.', 'I would like to swap the {p} for another model, order {o}.',
                       'Returning the {p}, order {o}, send me the label.', 'I changed my mind about the {p}, order {o}: cancel and refund.',
                       'Can I return the {p} in a shop? Order {o}.'],
    ('en', 'account'): ['I cannot log in to my profile.', 'I forgot my password for the site.', 'I would like to change my e-mail.',
                        'Please delete my account.', 'The verification code does not arrive.', 'My profile seems to be locked.',
                        'I must update the address in my account.', 'How do I turn on two-step login?'],
    ('en', 'information'): ['Do you still have the {p} in stock?', 'What does the {p} cost with the long warranty?', 'The {p}: does it come in black?',
                            'What size is the {p}?', 'Any discount on the {p} for schools?', 'What are your opening hours?',
                            'Do you ship the {p} to Switzerland?', 'How long is the warranty of the {p}?'],
}
_TONES = {
    ('it', 'high'): ['Urgente!', 'È gravissimo, rispondete subito.', 'Mi serve entro oggi.', 'Se non risolvete oggi chiamo l\'avvocato.'],
    ('it', 'low'): ['Non c\'è fretta.', 'Quando potete, con calma.', 'Rispondete pure la settimana prossima.', 'Non è urgente.'],
    ('it', 'normal'): ['', 'Grazie.', 'Buona giornata.', 'Cordiali saluti.'],
    ('en', 'high'): ['Urgent!', 'This is serious, answer at once.', 'I need it by today.', 'If you do not solve this today I call my lawyer.'],
    ('en', 'low'): ['No hurry.', 'Whenever you can.', 'Next week is fine.', 'It is not urgent.'],
    ('en', 'normal'): ['', 'Thanks.', 'Have a nice day.', 'Kind regards.'],
}


def _article(product):
    """The Italian article of a product."""
    if product[0] in 'aeiou':
        return "l'" + product
    masculine = {'tostapane', 'zaino', 'telefono', 'forno', 'monitor', 'frullatore', 'divano', 'router', 'orologio', 'materasso',
                 'aspirapolvere'}
    if product == 'cuffie':
        return 'le cuffie'
    if product in masculine:
        return ('lo ' if product.startswith(('z', 'st')) else 'il ') + product
    return 'la ' + product


def _rows(task, random_of, count, held):
    rows = []
    cells = sorted(_SENTENCES)
    while len(rows) < count:
        language, category = cells[len(rows) % len(cells)]
        frame = random_of.choice([one for i, one in enumerate(_SENTENCES[language, category]) if (i % 4 == 3) == held])
        urgency = random_of.choice(URGENCIES)
        tones = _TONES[language, urgency]
        tone = random_of.choice(tones[-1:] if held and urgency != 'normal' else tones[:-1])
        product = random_of.choice(_PRODUCTS[language])
        order = random_of.choice([str(random_of.randint(10000, 999999)), f'A-{random_of.randint(1000, 9999)}',
                                  f'{random_of.choice("BCDFG")}{random_of.randint(100, 9999)}'])
        text = frame.format(p=_article(product) if language == 'it' else product, o=order)
        text = text[0].upper() + text[1:]
        text = f'{tone} {text}' if random_of.random() < 0.4 else f'{text} {tone}'
        rows.append(task.row(text.strip(), {'category': category, 'urgency': urgency, 'order': order if '{o}' in frame else '',
                                            'product': product if '{p}' in frame else ''},
                             'new_frame' if held else 'known_frame', language))
    return rows


def tickets(_folder, seed):
    random_of = generator(seed, 'tickets')
    task = Task('tickets', 'Customer message to a ticket', 'Turn the message into a ticket: category, urgency, order, product.', SCHEMA,
                'Apache-2.0', ['generated'], metric='json', languages=('it', 'en'), grown=True)
    held = _rows(task, random_of, 200, True) + _rows(task, random_of, 120, False)
    return task.take(_rows(task, random_of, 3500, False), held, random_of)
