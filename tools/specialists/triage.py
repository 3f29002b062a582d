"""Requests to an assistant, with the kind of task and how hard it is, in Italian and English."""
import re

from rows import Task, generator

KINDS = ['chat', 'extract', 'classify', 'summarise', 'translate', 'code', 'reason']
LEVELS = ['easy', 'medium', 'hard']
SCHEMA = {'type': 'object', 'properties': {'task': {'type': 'string', 'enum': KINDS},
                                           'difficulty': {'type': 'string', 'enum': LEVELS}},
          'required': ['task', 'difficulty'], 'additionalProperties': False}

# The level is what the wording asks for: one step on little text; several steps or a whole document; expert knowledge,
# proofs, whole systems. Every fourth frame of a cell stands on the held-out side alone.
_FRAMES = {
    ('it', 'chat', 'easy'): ['Ciao, come va?', 'Buongiorno!', 'Grazie mille per {aiuto}', 'Come ti chiami?', 'Dimmi una battuta su {tema}',
                             'Che cosa sai fare?', 'Mi annoio, parliamo di {tema}?', 'Buonanotte e a domani'],
    ('it', 'chat', 'medium'): ['Consigliami un regalo per chi ama {tema}', 'Che ne pensi di {tema}? Dammi due punti di vista',
                               'Scrivi un invito per una serata su {tema}', 'Proponimi un fine settimana a tema {tema}'],
    ('it', 'extract', 'easy'): ['Trova la data in: {frase}', 'Qual è l\'importo in questa frase? {frase}', 'Estrai il nome da: {frase}',
                                'Che città compare qui? {frase}'],
    ('it', 'extract', 'medium'): ['Estrai in JSON cliente, data e importo da: {frase}', 'Fai una tabella con tutti i numeri di: {frase}',
                                  'Elenca persone e luoghi citati nel verbale su {tema}', 'Prendi scadenze e responsabili dalla mail su {tema}'],
    ('it', 'classify', 'easy'): ['Positivo o negativo? {frase}', 'È spam? {frase}', 'È una domanda o un reclamo? {frase}',
                                 'Di che lingua è: {frase}'],
    ('it', 'classify', 'medium'): ['Assegna a ogni messaggio su {tema} una delle otto categorie', 'Ordina questi ticket su {tema} per urgenza',
                                   'Dividi le recensioni su {tema} per argomento e tono', 'Classifica i documenti su {tema} per reparto'],
    ('it', 'summarise', 'easy'): ['Riassumi in una frase: {frase}', 'Accorcia: {frase}', 'Dai un titolo a: {frase}', 'In breve, che dice? {frase}'],
    ('it', 'summarise', 'medium'): ['Riassumi in dieci righe il rapporto su {tema}', 'Fai la sintesi della riunione su {tema}, con le decisioni',
                                    'Riassumi l\'articolo su {tema} per un bambino', 'Sintetizza le tre mail su {tema}'],
    ('it', 'summarise', 'hard'): ['Confronta e sintetizza quattro studi su {tema}, con i limiti di metodo',
                                  'Riassumi la sentenza su {tema} e le sue conseguenze giuridiche',
                                  'Sintetizza cento pagine di bilancio su {tema} e segnala le anomalie',
                                  'Fai una rassegna critica della letteratura su {tema}'],
    ('it', 'translate', 'easy'): ['Traduci in inglese: {frase}', 'Come si dice "{tema}" in francese?', 'Traduci in spagnolo: {tema}',
                                  'In tedesco: {frase}'],
    ('it', 'translate', 'medium'): ['Traduci la lettera su {tema} in inglese formale', 'Traduci il manuale su {tema} tenendo i termini tecnici',
                                    'Traduci la pagina su {tema} e spiega i modi di dire', 'Volgi in inglese il discorso su {tema}'],
    ('it', 'translate', 'hard'): ['Traduci in rima il sonetto su {tema}', 'Traduci il contratto su {tema} per un tribunale inglese',
                                  'Rendi in inglese la satira su {tema} salvando i giochi di parole', 'Traduci il brevetto su {tema} con le rivendicazioni'],
    ('it', 'code', 'easy'): ['Scrivi una funzione Python che {passo}', 'Come si stampa una lista in Python?', 'Correggi: pritn("ciao")',
                             'Scrivi un comando bash che {passo}'],
    ('it', 'code', 'medium'): ['Scrivi una classe con i test che {passo}', 'Aggiungi la cache al programma che {passo}',
                               'Riscrivi in Rust lo script che {passo}', 'Scrivi una query SQL con due join che {passo}'],
    ('it', 'code', 'hard'): ['Progetta un sistema distribuito tollerante ai guasti che {passo}', 'Scrivi un compilatore per un linguaggio che {passo}',
                             'Dimostra che l\'algoritmo concorrente che {passo} è senza stalli', 'Trova la corsa critica nel codice che {passo} e provala'],
    ('it', 'reason', 'easy'): ['Quanto fa {a} più {b}?', 'Se ho {a} mele e ne mangio una, quante restano?', 'È maggiore {a} o {b}?', 'Quanto fa {a} per due?'],
    ('it', 'reason', 'medium'): ['Un treno va a {a} km/h e uno a {b}: quando si incontrano dopo {a} km?', 'Pianifica {a} turni per {b} persone senza doppioni',
                                 'Con il {a}% di sconto e poi il {b}% di IVA, quanto pago 80 euro?', 'Se {a} operai finiscono in {b} giorni, quanti ne servono per finire prima?'],
    ('it', 'reason', 'hard'): ['Dimostra che ci sono infiniti primi della forma {a}n+1', 'Calcola l\'integrale multiplo di ordine {a} su una varietà di dimensione {b}',
                               'Trova una strategia ottima per il gioco con {a} giocatori e informazione incompleta', 'Dimostra il teorema per ogni grafo con {a} vertici e grado {b}'],
    ('en', 'chat', 'easy'): ['Hi, how are you?', 'Good morning!', 'Thanks a lot for {help}', 'What is your name?', 'Tell me a joke about {topic}',
                             'What can you do?', 'I am bored, shall we talk about {topic}?', 'Good night, see you'],
    ('en', 'chat', 'medium'): ['Suggest a gift for somebody who loves {topic}', 'What do you think of {topic}? Give two views',
                               'Write an invitation to an evening about {topic}', 'Plan a weekend around {topic}'],
    ('en', 'extract', 'easy'): ['Find the date in: {text}', 'What amount is in this sentence? {text}', 'Extract the name from: {text}', 'Which city is named here? {text}'],
    ('en', 'extract', 'medium'): ['Extract customer, date and amount as JSON from: {text}', 'Make a table of all numbers in: {text}',
                                  'List the people and places in the minutes about {topic}', 'Take deadlines and owners from the mail about {topic}'],
    ('en', 'classify', 'easy'): ['Positive or negative? {text}', 'Is this spam? {text}', 'Question or complaint? {text}', 'Which language is this: {text}'],
    ('en', 'classify', 'medium'): ['Give each message about {topic} one of eight categories', 'Order these tickets about {topic} by urgency',
                                   'Split the reviews about {topic} by subject and tone', 'Sort the documents about {topic} by department'],
    ('en', 'summarise', 'easy'): ['Sum up in one sentence: {text}', 'Shorten: {text}', 'Give a title to: {text}', 'In short, what does it say? {text}'],
    ('en', 'summarise', 'medium'): ['Summarise the report about {topic} in ten lines', 'Sum up the meeting about {topic}, with the decisions',
                                    'Summarise the article about {topic} for a child', 'Condense the three mails about {topic}'],
    ('en', 'summarise', 'hard'): ['Compare and synthesise four studies of {topic}, with the limits of their methods',
                                  'Summarise the ruling about {topic} and its legal consequences',
                                  'Condense a hundred pages of accounts about {topic} and flag anomalies', 'Write a critical review of the literature on {topic}'],
    ('en', 'translate', 'easy'): ['Translate into Italian: {text}', 'How do you say "{topic}" in French?', 'Translate into Spanish: {topic}', 'In German: {text}'],
    ('en', 'translate', 'medium'): ['Translate the letter about {topic} into formal Italian', 'Translate the manual about {topic}, keep the technical terms',
                                    'Translate the page about {topic} and explain the idioms', 'Put the speech about {topic} into Italian'],
    ('en', 'translate', 'hard'): ['Translate the sonnet about {topic} in rhyme', 'Translate the contract about {topic} for an Italian court',
                                  'Render the satire about {topic} in Italian and save the puns', 'Translate the patent about {topic} with its claims'],
    ('en', 'code', 'easy'): ['Write a Python function that {step}', 'How do I print a list in Python?', 'Fix: pritn("hello")', 'Write a bash command that {step}'],
    ('en', 'code', 'medium'): ['Write a class with tests that {step}', 'Add a cache to the program that {step}', 'Rewrite in Rust the script that {step}',
                               'Write an SQL query with two joins that {step}'],
    ('en', 'code', 'hard'): ['Design a fault-tolerant distributed system that {step}', 'Write a compiler for a language that {step}',
                             'Prove that the concurrent algorithm that {step} never deadlocks', 'Find the race in the code that {step} and prove it'],
    ('en', 'reason', 'easy'): ['What is {a} plus {b}?', 'I have {a} apples and eat one: how many are left?', 'Which is larger, {a} or {b}?', 'What is twice {a}?'],
    ('en', 'reason', 'medium'): ['One train does {a} km/h, another {b}: when do they meet after {a} km?', 'Plan {a} shifts for {b} people without repeats',
                                 'With {a}% off and then {b}% tax, what do I pay for 80 euros?', 'If {a} workers need {b} days, how many finish a day earlier?'],
    ('en', 'reason', 'hard'): ['Prove that there are infinitely many primes of the form {a}n+1', 'Compute the integral of order {a} over a manifold of dimension {b}',
                               'Find an optimal strategy for a game of {a} players with incomplete information', 'Prove the theorem for every graph of {a} vertices and degree {b}'],
}
_FILLERS = {
    'tema': 'il cinema;la cucina;i vini;il clima;le energie rinnovabili;la privacy;il calcio;la musica;i mutui;la sanità;i trasporti;'
            'la scuola;i viaggi;l\'arte;il lavoro da casa;le api;i vulcani;la fiscalità;i robot;il mare'.split(';'),
    'topic': 'films;cooking;wine;the climate;solar power;privacy;football;music;mortgages;health care;transport;schools;travel;art;'
             'remote work;bees;volcanoes;taxes;robots;the sea'.split(';'),
    'frase': 'Il 3 maggio Anna ha pagato 40 euro a Torino;Il corriere non è mai arrivato;La cena era ottima e il servizio gentile;'
             'Hai vinto un premio, clicca qui;La riunione è rinviata a lunedì;Ho comprato due libri a Bari per 25 euro;'
             'Non funziona niente da ieri;Il gatto dorme sul divano'.split(';'),
    'text': 'On 3 May Anna paid 40 euros in Turin;The courier never came;The dinner was great and the staff kind;'
            'You won a prize, click here;The meeting moves to Monday;I bought two books in Bari for 25 euros;'
            'Nothing works since yesterday;The cat sleeps on the sofa'.split(';'),
    'aiuto': 'l\'aiuto;tutto;la risposta;ieri;la pazienza'.split(';'), 'help': 'your help;everything;the answer;yesterday;your patience'.split(';'),
    'passo': 'ordina una lista;conta le parole di un file;legge un CSV;somma due numeri;cerca i doppioni;scarica una pagina;'
             'valida una data;unisce due tabelle;invia una mail;comprime una cartella'.split(';'),
    'step': 'sorts a list;counts the words of a file;reads a CSV;adds two numbers;finds duplicates;downloads a page;'
            'checks a date;joins two tables;sends a mail;packs a folder'.split(';'),
}


_ARTICLES = [('il ', 'l '), ('lo ', 'llo '), ('la ', 'lla '), ('i ', 'i '), ('gli ', 'gli '), ('le ', 'lle '), ("l'", "ll'")]


def contract(text):
    """su la scuola -> sulla scuola, di il mare -> del mare."""
    for article, tail in _ARTICLES:
        text = re.sub(rf"\bsu {re.escape(article)}", f'su{tail}', text)
        text = re.sub(rf"\bdi {re.escape(article)}", f'de{tail}', text)
    return text


def _rows(task, random_of, held, each):
    rows = []
    for (language, kind, level), frames in sorted(_FRAMES.items()):
        chosen = [frame for i, frame in enumerate(frames) if (i % 4 == 3) == held]
        made = set()
        for _ in range(each * 6):
            fill = {name: random_of.choice(values) for name, values in _FILLERS.items()}
            made.add(contract(random_of.choice(chosen).format(a=random_of.randint(2, 99), b=random_of.randint(2, 99), **fill)))
        texts = sorted(made)
        random_of.shuffle(texts)
        rows += [task.row(text, {'task': kind, 'difficulty': level}, 'new_frame' if held else 'known_frame', language)
                 for text in texts[:each]]
    random_of.shuffle(rows)
    return rows


def triage(_folder, seed):
    random_of = generator(seed, 'triage')
    task = Task('triage', 'Kind and difficulty of a request', 'What kind of task is the request, and how hard is it?', SCHEMA,
                'Apache-2.0', ['generated'], metric='json', languages=('it', 'en'), grown=True)
    known = _rows(task, random_of, False, 60)
    return task.take(known[100:], _rows(task, random_of, True, 12) + known[:100], random_of)
