"""Tasks from published sets: banking intents in groups, clinc150's domains, snips slots, sentiment, exam subjects."""
from rows import Task, balanced, generator, labels, one_of, read_jsonl

# banking77's 77 intents in ten groups, each a queue that a person would staff.
BANKING_GROUPS = {
    'card_delivery': 'card_arrival card_delivery_estimate get_physical_card order_physical_card getting_spare_card '
                     'card_about_to_expire activate_my_card card_linking',
    'card_trouble': 'card_not_working contactless_not_working declined_card_payment card_swallowed '
                    'virtual_card_not_working card_acceptance pending_card_payment reverted_card_payment? '
                    'apple_pay_or_google_pay',
    'security': 'lost_or_stolen_card compromised_card lost_or_stolen_phone card_payment_not_recognised '
                'cash_withdrawal_not_recognised direct_debit_payment_not_recognised pin_blocked change_pin passcode_forgotten',
    'cash': 'pending_cash_withdrawal wrong_amount_of_cash_received declined_cash_withdrawal atm_support',
    'top_up': 'automatic_top_up pending_top_up top_up_limits top_up_reverted verify_top_up top_up_by_cash_or_cheque '
              'top_up_failed topping_up_by_card balance_not_updated_after_cheque_or_cash_deposit',
    'transfer': 'cancel_transfer transfer_not_received_by_recipient declined_transfer pending_transfer transfer_timing '
                'beneficiary_not_allowed receiving_money failed_transfer transfer_into_account '
                'balance_not_updated_after_bank_transfer',
    'fees': 'extra_charge_on_statement card_payment_fee_charged top_up_by_bank_transfer_charge transfer_fee_charged '
            'exchange_charge top_up_by_card_charge cash_withdrawal_charge transaction_charged_twice',
    'exchange': 'exchange_rate card_payment_wrong_exchange_rate fiat_currency_support exchange_via_app '
                'wrong_exchange_rate_for_cash_withdrawal',
    'identity': 'age_limit edit_personal_details why_verify_identity unable_to_verify_identity verify_source_of_funds '
                'verify_my_identity terminate_account country_support',
    'refund': 'request_refund Refund_not_showing_up',
    'card_kinds': 'supported_cards_and_currencies getting_virtual_card visa_or_mastercard disposable_card_limits '
                  'get_disposable_virtual_card',
}

EXAM_SUBJECTS = {'Biology': 'biologia', 'History': 'storia', 'Physics': 'fisica', 'Chemistry': 'chimica',
                 'Psychology': 'psicologia', 'Sociology': 'sociologia', 'Informatics': 'informatica', 'Politics': 'politica',
                 'Philosophy': 'filosofia', 'Ethics': 'etica', 'Geology': 'geologia'}

TEXT_MAX = 300  # characters: a question, its instructions and the answer must fit in 256 tokens


def banking(folder, seed):
    random_of = generator(seed, 'banking')
    group_of = {intent: group for group, intents in BANKING_GROUPS.items() for intent in intents.split()}
    task = Task('banking', 'Bank: queue of a question', one_of('Which queue does the bank message belong to?', BANKING_GROUPS),
                labels(BANKING_GROUPS), 'CC-BY-4.0', ['banking77 (PolyAI, CC BY 4.0)'])
    sides = {}
    for side in ('train', 'test'):
        rows = [task.row(row['text'], group_of[row['intent']]) for row in read_jsonl(folder / f'banking77/{side}.jsonl')
                if len(row['text']) <= TEXT_MAX]
        sides[side] = balanced(rows, 3000, random_of)
    return task.take(sides['train'], sides['test'][:400], random_of)


def domains(folder, seed):
    random_of = generator(seed, 'domains')
    names = ['auto_and_commute', 'banking', 'credit_cards', 'home', 'kitchen_and_dining', 'meta', 'small_talk', 'travel',
             'utility', 'work', 'other']
    task = Task('domains', 'Domain of a request, or none of them', one_of('Which domain is the request about?', names),
                labels(names), 'CC-BY-3.0', ['clinc150 (Clinc, CC BY 3.0)'])

    def rows_of(*files):
        return [task.row(row['text'], 'other' if row['domain'] == 'oos' else row['domain'])
                for name in files for row in read_jsonl(folder / f'clinc150/{name}.jsonl')]
    train = balanced(rows_of('train', 'oos_train', 'oos_val'), 2200, random_of)
    test = balanced(rows_of('test', 'oos_test'), 400, random_of)
    return task.take(train, test, random_of)


SNIPS_SLOTS = {
    'AddToPlaylist': ['music_item', 'playlist', 'artist', 'entity_name'],
    'GetWeather': ['city', 'country', 'state', 'timeRange', 'condition_description', 'condition_temperature'],
    'PlayMusic': ['artist', 'service', 'year', 'track', 'album', 'genre'],
    'SearchCreativeWork': ['object_type', 'object_name'],
}
_SLOT_NAMES = {'condition_description': 'condition', 'condition_temperature': 'temperature', 'entity_name': 'title',
               'music_item': 'item', 'object_name': 'name', 'object_type': 'type', 'timeRange': 'time'}
_INTENTS = {'AddToPlaylist': 'add_to_playlist', 'GetWeather': 'weather', 'PlayMusic': 'play_music',
            'SearchCreativeWork': 'search_work'}


def _slots_schema():
    """One object per intent: the intent, then any of its slots, in their order."""
    shapes = []
    for intent, slots in SNIPS_SLOTS.items():
        properties = {'intent': {'const': _INTENTS[intent]}}
        properties.update({_SLOT_NAMES.get(slot, slot): {'type': 'string', 'maxLength': 48} for slot in slots})
        shapes.append({'type': 'object', 'properties': properties, 'required': ['intent'], 'additionalProperties': False})
    return {'anyOf': shapes}


def slots(folder, seed):
    random_of = generator(seed, 'slots')
    task = Task('slots', 'Spoken command to JSON', 'Turn the command into JSON: the intent, then its slots as they are written.',
                _slots_schema(), 'CC0-1.0', ['snips (Sonos, CC0 1.0)'], metric='json')

    def rows_of(name):
        rows = []
        for row in read_jsonl(folder / f'snips/{name}.jsonl'):
            wanted = SNIPS_SLOTS.get(row['intent'])
            if wanted is None or len(row['text']) > 100:
                continue
            answer = {'intent': _INTENTS[row['intent']]}
            for slot in wanted:
                found = [one['value'].strip() for one in row['slots'] if one['slot'] == slot]
                if found and len(found[0]) <= 48:
                    answer[_SLOT_NAMES.get(slot, slot)] = ' '.join(found[0].split())
            if len({one['slot'] for one in row['slots']}) == len(row['slots']):
                rows.append(task.row(row['text'], answer))
        return balanced(rows, 3000, random_of, label=lambda row: row['answer']['intent'])
    return task.take(rows_of('train'), rows_of('validate'), random_of)


def sentiment(folder, seed):
    random_of = generator(seed, 'sentiment')
    task = Task('sentiment', 'Sentiment of a review', one_of('Sentiment of the review?', ['negative', 'positive']), labels(['negative', 'positive']),
                'CC-BY-4.0', ['sentence_polarity (Pang and Lee, CC BY 4.0)'])
    rows = [task.row(row['text'], ['negative', 'positive'][row['label']])
            for row in read_jsonl(folder / 'sentence_polarity/all.jsonl') if len(row['text']) <= 200]
    rows = balanced(rows, len(rows), random_of)
    return task.take(rows[400:3400], rows[:400], random_of)


def exams(folder, seed):
    random_of = generator(seed, 'exams')
    task = Task('exams', 'Subject of an Italian exam question', one_of('Di quale materia è la domanda?', EXAM_SUBJECTS.values()), labels(EXAM_SUBJECTS.values()),
                'CC-BY-SA-4.0', ['exams-qa, Italian part (CC BY-SA 4.0)'], languages=('it',))

    def rows_of(name):
        return [task.row(row['question'], EXAM_SUBJECTS[row['subject']]) for row in read_jsonl(folder / f'exams_it/{name}.jsonl')
                if row['subject'] in EXAM_SUBJECTS and len(row['question']) <= TEXT_MAX]
    rows = rows_of('train') + rows_of('dev')
    random_of.shuffle(rows)
    # Rare subjects on both sides in the same share.
    by_subject = {}
    for row in rows:
        by_subject.setdefault(row['answer'], []).append(row)
    held = [row for group in by_subject.values() for row in group[:max(2, round(len(group) * 0.36))]]
    kept = [row for group in by_subject.values() for row in group[max(2, round(len(group) * 0.36)):]]
    random_of.shuffle(kept)
    return task.take(kept, held, random_of)
